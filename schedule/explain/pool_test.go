package explain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule"
	"starling/schedule/preempt"
	"starling/terms"
)

// TestNothingWaitsWithoutReason places random jobs in random pools, lets some end and others give way, and wants a
// reason for all that still waits: if none is found, the pool or the nodes have room that placement did not see, or the
// other way round.
func TestNothingWaitsWithoutReason(t *testing.T) {
	reasons := map[string]int{}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := pooledCluster(r)
		for i := range 10 {
			s.Index, s.Time = s.Index+1, s.Time+terms.Time(r.IntN(1500))
			s.AddJob(pooledJob(r, fmt.Sprintf("p%d/j%d", r.IntN(3), i)))
			placeAll(s)
			if r.IntN(2) == 0 {
				endSome(s, r)
				placeAll(s)
			}
			before := s.Digest()
			s.EachJob(func(j *workload.Job) bool {
				for _, f := range Job(s, j, &Reader{}) {
					word, _, _ := strings.Cut(f.Reason, ":")
					if reasons[word]++; strings.HasPrefix(f.Reason, "placement") {
						t.Errorf("seed %d, after job %d: %s waits: %s %q", seed, i, j.Name(), f.Reason, f.Details)
					}
				}
				return true
			})
			if s.Digest() != before {
				t.Fatalf("seed %d: the value is another one after it was explained", seed)
			}
		}
	}
	for _, want := range []string{"waits for its pool", "waits for room for its gang", "waits for room",
		"waits for the end of others"} {
		found := 0
		for reason, count := range reasons {
			if strings.HasPrefix(reason, want) {
				found += count
			}
		}
		if found == 0 {
			t.Errorf("nothing of %v, got %v", want, reasons)
		}
	}
}

func placeAll(s *cluster.State) {
	for range 5 {
		s.Index++
		schedule.Run(s, nil, nil, func(r facts.SlotRef, _ terms.JobID, _ preempt.Rule) { s.StopSlot(r, facts.ByPreemption) })
	}
}

// endSome lets what was told to stop end, and some others.
func endSome(s *cluster.State, r *rand.Rand) {
	s.EachJob(func(j *workload.Job) bool {
		s.EachSlot(j.ID, 0, func(ref facts.SlotRef, slot facts.Slot) bool {
			switch {
			case slot.Phase == facts.Stopping:
				slot.Phase, slot.Version, slot.Cause = facts.Waiting, 0, facts.NoCause
				s.SetSlot(ref, slot)
			case slot.Phase == facts.Assigned && r.IntN(4) == 0:
				slot.Phase = facts.Succeeded
				s.SetSlot(ref, slot)
			}
			return true
		})
		return true
	})
}

func pooledCluster(r *rand.Rand) *cluster.State {
	s := cluster.NewState()
	for i := range 4 {
		n := s.EnsureNode(terms.NodeName(fmt.Sprint("n", i))).Index
		s.SetPeer(n, terms.NewPeerID(s.Node(n).Name, 1))
		s.SetOffer(n, &terms.Offer{Capacity: terms.Resources{1000 + r.Int64N(4)*1000}})
	}
	specs := []terms.Pool{terms.NewPool(terms.DefaultPool)}
	for i := range 3 {
		p := terms.NewPool(terms.PoolPath(fmt.Sprint("p", i)))
		reservation := r.Int64N(4) * 1000
		p.Quotas[terms.CPU] = terms.Quota{Reservation: reservation, Limit: reservation + r.Int64N(8)*1000, Share: r.Int64N(3)}
		p.PreemptionDelayMillis, p.ControllerLimit = uint32(r.IntN(2)*1000), terms.Percent(50+r.IntN(51))
		specs = append(specs, p)
	}
	s.SetPools(specs)
	return s
}

func pooledJob(r *rand.Rand, name string) *terms.Job {
	j := &terms.Job{Name: terms.JobName(name), Type: terms.Batch, Priority: uint32(r.IntN(3)) * 10, Tasks: []terms.Task{{
		Name: "t", Instances: 1 + r.Uint32N(5), Command: []string{"true"}, Placement: terms.Pack,
		Resources: terms.Resources{500 + r.Int64N(4)*500},
	}}}
	task := &j.Tasks[0]
	switch r.IntN(6) {
	case 0:
		j.Revocable = true
	case 1:
		j.Preemption = terms.NonPreemptible
	case 2:
		j.Controller = true
	case 3:
		task.MaxRunning = 1
	}
	if r.IntN(3) == 0 && task.MaxRunning == 0 {
		task.MinAvailable = 1 + r.Uint32N(task.Instances)
	}
	return j
}
