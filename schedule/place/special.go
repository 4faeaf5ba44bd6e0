package place

import "starling/cluster"

// special places, one by one, up to most of the seats of a task that wait for a particular node or version, on nodes of
// the given pages, and returns how many it placed.
// Seats of a slot that was ordered with this entry already wait for the next: finished is false if there are any.
func (q *search) special(pages []int, most uint32) (placed uint32, finished bool) {
	finished = true
	for helped := true; helped && placed < most; {
		helped = false
		for _, r := range q.specials() {
			if placed == most {
				break
			}
			slot, _ := q.s.SlotAt(r)
			id, task := q.key.Split()
			one := searchFor(q.s, q.key, q.s.Job(id).TaskSpecOf(task, slot.Version), nil)
			if one.spec == nil {
				continue
			}
			if q.chosen {
				one.in(q.domain)
			}
			if one.gaps = q.gaps; q.s.Job(id).SpecOf(slot.Version).Shares() {
				one.spot = q.spot
			}
			one.own = q.own
			n, ok := one.wished(&slot, pages)
			q.own = one.own
			now := q.admit != nil && q.s.OrderedNow(r)
			switch {
			case !ok:
			case q.admit != nil && !q.admit(one.spec, now):
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

// specials returns the seats that wait for a particular node or version, lowest first.
func (q *search) specials() []cluster.SlotRef {
	id, task := q.key.Split()
	waiting := make([]cluster.SlotRef, 0, q.task().SpecialWaits())
	q.task().EachSpecial(id, task, func(r cluster.SlotRef, _ cluster.Slot) bool {
		if !q.members || r.Seat == cluster.MainSeat {
			waiting = append(waiting, r)
		}
		return true
	})
	return waiting
}

// wished returns the node for one seat by what it wishes of its last one.
func (q *search) wished(slot *cluster.Slot, pages []int) (n cluster.NodeIndex, found bool) {
	last := (slot.Order != 0 || slot.Wish == cluster.OnlyNode) && q.fitsNow(slot.Node)
	switch slot.Wish {
	case cluster.OnlyNode:
		return slot.Node, last
	case cluster.PreferNode:
		if last {
			return slot.Node, true
		}
	case cluster.AvoidNode:
		q.avoided, q.avoids, q.simple = slot.Node, slot.Order != 0, false
		if n, found = q.best(pages); found {
			return n, true
		}
		return slot.Node, last
	}
	return q.best(pages)
}
