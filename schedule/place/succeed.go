package place

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
)

// Succeed returns the value as it would be with an instance of the newest version in the place of an earlier one, whose
// own room counts as free: on the same node, or, if it may go elsewhere, on the first that has room and is not ruled
// out by its volumes. So several can be tried one after the other. If it finds none, the value tells only what was
// visited. Pools are not asked.
func Succeed(s *cluster.State, r facts.SlotRef, elsewhere bool) (trial *cluster.State, found bool) {
	trial = s.Copy()
	slot, _ := trial.SlotAt(r)
	had := Predecessor{Slot: r, Node: slot.Node, Spec: trial.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version)}
	slot.Phase = facts.Stopped
	trial.SetSlot(r, slot)
	j, n := trial.Job(r.Job), slot.Node
	q := NewSearch(trial, facts.KeyOf(r.Job, int(r.Task)), nil)
	found = q.fitsNow(n)
	if tied := j.Spec.Type == terms.Daemon || j.Tied(int(r.Task), q.Spec, s.Rules); !found && elsewhere && !tied {
		n, found = q.firstFree()
	}
	put := func() {
		trial.SetSlot(r, facts.Slot{Order: slot.Order, Node: n, Version: j.Version, Phase: facts.Assigned})
	}
	if found {
		put()
	} else if n = slot.Node; s.Rules >= rules.Successors {
		found = q.inherit(&had, put)
	}
	return trial, found
}

// Predecessor is an instance whose room is its successor's before any other's.
type Predecessor struct {
	Slot facts.SlotRef
	Node facts.NodeIndex
	Spec *terms.Task
}

// Follow gives a node to what takes the place of an instance that has ended, and waits in the same seat, if it needs no
// more: any that it may have, or its predecessor's although that is kept for others. It tells whether it did.
func (q *Search) Follow(had *Predecessor, pages []int) bool {
	slot, _ := q.s.SlotAt(had.Slot)
	special := slot.Special()
	if !q.bequeathed(had) {
		return false
	}
	if special {
		if n, ok := q.wished(&slot, pages); ok {
			q.s.AssignSpecial(had.Slot, n, q.visit)
			return true
		}
	} else if q.Among(pages, 1) > 0 {
		return true
	}
	return q.inherit(had, func() {
		if special {
			q.s.AssignSpecial(had.Slot, had.Node, q.visit)
		} else {
			q.assign(had.Node, 1)
		}
	})
}

// Follows tells whether the next of a task could take the place of one that has ended: it needs no more, and may be
// there.
func (q *Search) Follows(had *Predecessor) bool { return q.bequeathed(had) && q.fitsNow(had.Node) }

// bequeathed tells whether an instance needs no more than its predecessor had.
func (q *Search) bequeathed(had *Predecessor) bool {
	need, free := q.Spec.Amounts(), had.Spec.Amounts()
	return need.Times(&free, 1) == 1
}

// inherit has an instance put on the node of its predecessor if it may be there, whatever is kept there for others, who
// do not count on that room. It tells whether it did.
func (q *Search) inherit(had *Predecessor, put func()) (fits bool) {
	if !q.bequeathed(had) {
		return false
	}
	ids := slices.Clone(q.s.NominatedJobs())
	kept := make([]facts.Nomination, len(ids))
	for i, id := range ids {
		kept[i], _ = q.s.NominationOf(id)
		there := func(seat facts.NominatedSeat) bool { return seat.Node == had.Node }
		if slices.ContainsFunc(kept[i].Seats, there) {
			q.s.SetNomination(id, facts.Nomination{})
		}
	}
	if fits = q.fitsNow(had.Node); fits {
		put()
	}
	for i, id := range ids {
		if _, stays := q.s.NominationOf(id); !stays {
			q.s.SetNomination(id, kept[i])
		}
	}
	return fits
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
