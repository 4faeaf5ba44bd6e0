package place

import "starling/cluster/facts"

// Special places, one by one, up to most of the seats of a task that wait for a particular node or version, on nodes of
// the given pages, and returns how many it placed.
// Seats of a slot that was ordered with this entry already wait for the next: finished is false if there are any.
func (q *Search) Special(pages []int, most uint32) (placed uint32, finished bool) {
	finished = true
	for helped := true; helped && placed < most; {
		helped = false
		for _, r := range q.specials() {
			if placed == most {
				break
			}
			slot, _ := q.s.SlotAt(r)
			id, task := q.key.Split()
			one := SearchFor(q.s, q.key, q.s.Job(id).TaskSpecOf(task, slot.Version), nil)
			if one.Spec == nil {
				continue
			}
			if q.chosen {
				one.In(q.domain)
			}
			if one.Gaps = q.Gaps; q.s.Job(id).SpecOf(slot.Version).Shares() {
				one.spot = q.spot
			}
			one.own = q.own
			n, ok := one.wished(&slot, pages)
			q.own = one.own
			now := q.Admit != nil && q.s.OrderedNow(r)
			switch {
			case !ok:
			case q.Admit != nil && !q.Admit(one.Spec, now):
			case now:
				finished = false
			default:
				q.s.AssignSpecial(r, n, q.visit)
				q.addOwn(n, 1)
				one.spot.take(n, 1)
				placed++
				helped = helped || one.helps
			}
		}
	}
	return placed, finished
}

// SpecialSeats turns the search to the seats that wait for a particular node or version, or to the main ones among
// them.
func (q *Search) SpecialSeats(members bool) *Search {
	q.key, q.members = q.key.Special(), members
	return q
}

// specials returns the seats that wait for a particular node or version, lowest first.
func (q *Search) specials() []facts.SlotRef {
	id, task := q.key.Split()
	waiting := make([]facts.SlotRef, 0, q.task().SpecialWaits())
	q.task().EachSpecial(id, task, func(r facts.SlotRef, _ facts.Slot) bool {
		if !q.members || r.Seat == facts.MainSeat {
			waiting = append(waiting, r)
		}
		return true
	})
	return waiting
}

// wished returns the node for one seat by what it wishes of its last one.
func (q *Search) wished(slot *facts.Slot, pages []int) (n facts.NodeIndex, found bool) {
	last := (slot.Order != 0 || slot.Preference == facts.OnlyNode) && q.fitsNow(slot.Node)
	switch slot.Preference {
	case facts.OnlyNode:
		return slot.Node, last
	case facts.PreferNode:
		if last {
			return slot.Node, true
		}
	case facts.AvoidNode:
		q.avoided, q.avoids, q.simple = slot.Node, slot.Order != 0, false
		if n, found = q.best(pages); found {
			return n, true
		}
		return slot.Node, last
	}
	return q.best(pages)
}

// Nominated places up to most instances where room is kept for them.
func (q *Search) Nominated(nomination *facts.Nomination, most uint32) (placed uint32) {
	if q.Spec == nil || len(nomination.Seats) == 0 {
		return 0
	}
	most = min(most, q.task().Waits())
	q.s.Divide(q.key, q.Spec)
	_, task := q.key.Split()
	for _, seat := range nomination.Seats {
		for left := seat.Count; seat.Task == task && left > 0 && placed < most && q.fitsNow(seat.Node); left-- {
			q.assign(seat.Node, 1)
			if q.domain != nil && q.domain.any {
				q.locate()
			}
			if placed++; q.minds {
				q.s.Divide(q.key, q.Spec)
			}
		}
	}
	return placed
}
