package replica

import (
	"testing"

	"starling/command"
	"starling/terms"
)

// TestRoomIsKeptWithinADomain lets a job that is to run in one rack wait for a whole node, half of which work holds
// everywhere that is not preempted: nothing is, and a node is kept as it empties by itself.
func TestRoomIsKeptWithinADomain(t *testing.T) {
	s := clusterOf(4)
	mine, yours := terms.NewPool("mine"), terms.NewPool("yours")
	mine.Quotas[terms.CPU].Reservation, yours.Quotas[terms.CPU].Reservation = 128_000, 128_000
	mine.PreemptionDelayMillis = 0
	fixed := benchJob("yours/fixed", 4, terms.Spread, 32_000)
	fixed.Spec.Preemption = terms.NonPreemptible
	apply(s, 2, &command.ChangePools{Pools: []terms.Pool{mine, yours}})
	apply(s, 3, fixed)
	apply(s, 4, benchJob("yours/other", 4, terms.Spread, 32_000))
	one := benchJob("mine/job", 1, terms.Pack, 64_000)
	one.Spec.Within, one.Spec.MinAvailable = "rack", 1
	apply(s, 5, one)
	if claims, _ := s.NominationOf(s.JobOf("mine/job").ID); !claims.Backfill || len(claims.Seats) != 1 {
		t.Errorf("kept is %+v, want one node as it empties", claims)
	}
}
