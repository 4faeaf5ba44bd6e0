package cluster

import (
	"fmt"
	"testing"

	"starling/cluster/facts"
	"starling/cluster/preemptible"
	"starling/cluster/workload"
	"starling/terms"
)

// TestAssertions makes books wrong, and wants the next change of what is wrong to be refused at once.
func TestAssertions(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(s *State, j *workload.Job)
	}{
		{"room that is given back was held", func(s *State, _ *workload.Job) { s.Node(0).Held[0].Index = 7 }},
		{"what a pool holds can be counted", func(s *State, j *workload.Job) { s.editAccount(j.Pool).Held = terms.Work{} }},
		{"no fewer than none run at a priority", func(s *State, _ *workload.Job) { s.preemptible = preemptible.Index{} }},
		{"the phase of a slot was counted",
			func(_ *State, j *workload.Job) { j.Tasks[0].Counts = [facts.PhaseCount]uint32{} }},
		{"what services hold is not negative", func(s *State, _ *workload.Job) { s.Node(0).lasting = terms.Resources{} }},
	} {
		t.Run(c.want, func(t *testing.T) {
			s := NewState()
			n := s.EnsureNode("a")
			s.SetOffer(n.Index, &terms.Offer{Capacity: terms.Resources{1000, 1000, 1000}})
			j := s.AddJob(&terms.Job{Name: "j", Type: terms.Stateless,
				Tasks: []terms.Task{{Name: "t", Instances: 1, Resources: terms.Resources{500, 1, 1}}}})
			s.Assign(facts.KeyOf(j.ID, 0), n.Index, 1, nil)
			r := facts.SlotRef{Job: j.ID}
			slot, _ := s.SlotAt(r)
			slot.Phase = facts.Succeeded
			c.spoil(s, j)
			defer func() {
				if got := fmt.Sprint(recover()); got != "cluster: "+c.want {
					t.Errorf("got %s", got)
				}
			}()
			s.SetSlot(r, slot)
		})
	}
}
