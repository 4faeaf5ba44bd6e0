package kill

import (
	"context"
	"fmt"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
)

// margin is what may pass beyond the pulse's time to live until lost work runs elsewhere.
const margin = 2 * time.Second

// TestWorkMovesWithinTheTimeToLive lets whole machines die, one after the other: one whose member of the quorum
// follows, and the one that leads. It is not parallel to others, because it measures.
func TestWorkMovesWithinTheTimeToLive(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for pulses to end")
	}
	const ttl = 5 * time.Second
	tr := begin(t, ttl)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	tr.awaitRunning(tr.Agents[0], "web")
	for _, leader := range []bool{false, true} {
		victim := tr.memberThat(leader)
		times := tr.crash(victim)
		t.Logf("leader %t: left after %v, lost instances ran elsewhere after %v, time to live %v", leader, times.left,
			times.ran, ttl)
		if limit := ttl + margin; times.ran > limit {
			t.Errorf("leader %t: lost instances ran elsewhere after %v, want at most %v", leader, times.ran, limit)
		}
		tr.must(victim.Start())
		tr.must(victim.Ready(tr.soon()))
		tr.wantTasks(tr.awaitRunning(victim, "web"))
	}
	tr.wantWhole()
}

// times are what passed since a kill, as another peer's fold shows it.
type times struct{ left, ran time.Duration }

// crash kills a machine that has instances of the service and waits until all run elsewhere.
func (tr *trial) crash(victim *agents.Agent) times {
	tr.Helper()
	other := tr.others(victim)[0]
	lost := map[string]bool{} // by slot, until it runs elsewhere
	status := tr.status(other, "web")
	for _, slot := range status.GetSlots() {
		if slot.GetNode() == victim.Node {
			lost[slotName(slot)] = true
		}
	}
	if len(lost) == 0 {
		tr.Fatalf("agent %s has no instance to lose: %v", victim.Node, status.GetSlots())
	}
	began := time.Now()
	tr.must(victim.Crash(tr.soon()))
	var seen times
	ctx, done := context.WithCancel(tr.soon())
	defer done()
	request := &starlingv1.TailJournalRequest{From: status.GetIndex() + 1, Follow: true}
	err := tr.asked(other).TailJournal(ctx, request, func(answer *starlingv1.TailJournalResponse) error {
		for _, e := range answer.GetEntry().GetEffects() {
			switch {
			case e.GetKind() == "left":
				seen.left = time.Since(began)
			case e.GetKind() == "started" && e.GetNode() != victim.Node:
				id, _ := terms.ParseAllocationID(e.GetAllocation())
				delete(lost, id.Slot.String())
			}
		}
		if len(lost) == 0 && seen.ran == 0 {
			seen.ran = time.Since(began)
			done()
		}
		return nil
	})
	if seen.ran == 0 {
		tr.Fatalf("%v of agent %s run nowhere: %v", lost, victim.Node, err)
	}
	return seen
}

func slotName(slot *starlingv1.Slot) string {
	return fmt.Sprintf("web.%s[%d]", slot.GetTask(), slot.GetNumber())
}
