package place

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// Succeed returns the value as it would be with an instance of the newest version in the place of an earlier one, whose
// own room counts as free: on the same node, or, if it may go elsewhere, on the first that has room and is not ruled
// out by its volumes. So several can be tried one after the other. If it finds none, the value tells only what was
// visited. Pools are not asked.
func Succeed(s *cluster.State, r facts.SlotRef, elsewhere bool) (trial *cluster.State, found bool) {
	trial = s.Copy()
	slot, _ := trial.SlotAt(r)
	slot.Phase = facts.Stopped
	trial.SetSlot(r, slot)
	j, n := trial.Job(r.Job), slot.Node
	q := NewSearch(trial, facts.KeyOf(r.Job, int(r.Task)), nil)
	found = q.fitsNow(n)
	if tied := j.Spec.Type == terms.Daemon || j.Tied(int(r.Task), q.Spec, s.Rules); !found && elsewhere && !tied {
		n, found = q.firstFree()
	}
	if found {
		trial.SetSlot(r, facts.Slot{Order: slot.Order, Node: n, Version: j.Version, Phase: facts.Assigned})
	}
	return trial, found
}

// firstFree returns the first node that can run an instance.
func (q *Search) firstFree() (n facts.NodeIndex, found bool) {
	for phase := range q.phases() {
		q.enter(phase)
		for page := range q.s.RoomPages() {
			nodes := uint64(0)
			for _, kept := range q.purposes() {
				nodes |= q.fitting(page, kept)
			}
			for ; nodes != 0; nodes &= nodes - 1 {
				if n = nodeOf(page, nodes); q.able(n) {
					return n, true
				}
			}
		}
	}
	return 0, false
}
