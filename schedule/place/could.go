package place

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// What nodes could have, whoever is admitted.

// Possible tells whether nodes could have so many instances if all work were done that ends by itself.
func (q *Search) Possible(count uint32) bool { return q.Could(q.domain, count, false) == count }

// Could returns how many instances nodes of a domain could have then, at most most; or if they were empty.
func (q *Search) Could(d *Domain, most uint32, empty bool) (count uint32) {
	return q.Beside(&Together{Empty: empty}, d, most)
}

// Together is what nodes could have of several tasks beside each other.
type Together struct {
	// Empty asks what they could have if they were empty.
	Empty bool
	// taken is what those have for which there was room, nil if no other is asked about.
	taken map[facts.NodeIndex]*portion
}

// NewTogether returns what they could have of nothing yet.
func NewTogether(empty bool) *Together {
	return &Together{Empty: empty, taken: map[facts.NodeIndex]*portion{}}
}

// portion is a part of what a node has.
type portion struct {
	room    terms.Resources
	devices map[string]terms.Millidevices
}

// Beside returns how many instances nodes of a domain could have beside those that have been asked about, at most most.
func (q *Search) Beside(t *Together, d *Domain, most uint32) (count uint32) {
	d.each(q.s, func(n facts.NodeIndex) bool {
		if !q.s.Eligible(n) || !q.exclusive && q.s.Node(n).Offer.Exclusive() ||
			d != nil && !d.Has(q.s.Node(n)) {
			return true
		}
		room, taken := q.s.Yields(n), t.taken[n]
		if t.Empty {
			room = q.s.Node(n).Offer.Capacity
		}
		if taken != nil {
			room = room.Minus(taken.room)
		}
		times := q.Spec.Resources.Times(&room, most-count)
		if times > 0 && (len(q.Spec.Constraints) == 0 || q.ever(n)) {
			some := min(most-count, q.offers(q.s.Node(n), times), q.devicesBeside(taken, n))
			t.take(n, q.Spec, some)
			count += some
		}
		return count < most
	})
	return count
}

// devicesBeside returns for how many instances a node has devices beside what is taken.
func (q *Search) devicesBeside(taken *portion, n facts.NodeIndex) uint32 {
	most := uint32(terms.InstancesMax)
	for i := range q.Spec.Devices {
		if request := &q.Spec.Devices[i]; taken != nil {
			all := terms.Millidevices(q.s.Node(n).DeviceOf(request.Kind).Count) * terms.WholeDevice
			most = min(most, uint32((all-min(all, taken.devices[request.Kind]))/request.Amount))
		}
	}
	return most
}

// take notes that a node has so many instances.
func (t *Together) take(n facts.NodeIndex, spec *terms.Task, count uint32) {
	if t.taken == nil || count == 0 {
		return
	}
	taken := t.taken[n]
	if taken == nil {
		taken = &portion{devices: map[string]terms.Millidevices{}}
		t.taken[n] = taken
	}
	for k, amount := range spec.Resources {
		taken.room[k] += amount * int64(count)
	}
	for i := range spec.Devices {
		taken.devices[spec.Devices[i].Kind] += spec.Devices[i].Amount * terms.Millidevices(count)
	}
}

// Suits tells whether a node could run an instance if it were empty.
func (q *Search) Suits(n facts.NodeIndex) bool {
	node := q.s.Node(n)
	return (q.exclusive || !node.Offer.Exclusive()) && q.ever(n) && q.offers(node, 1) > 0
}

// HasPorts tells whether a node has the ports of an instance.
func (q *Search) HasPorts(n facts.NodeIndex) bool { return q.ports(q.s.Node(n), 1) > 0 }

// ever tells whether the rules about a node itself hold.
func (q *Search) ever(n facts.NodeIndex) bool {
	q.asked = q.s.Node(n)
	for i := range q.Spec.Constraints {
		if c := &q.Spec.Constraints[i]; !c.Soft && !c.Social() && !c.Holds(q) {
			return false
		}
	}
	return true
}

// offers returns for how many instances the node has devices at all, at most most.
func (q *Search) offers(node *cluster.Node, most uint32) uint32 {
	for i := range q.Spec.Devices {
		request := &q.Spec.Devices[i]
		offer := node.DeviceOf(request.Kind)
		switch {
		case !request.Takes(offer.Model):
			return 0
		case request.Share():
			most = min(most, offer.Count*uint32(terms.WholeDevice/request.Amount))
		default:
			most = min(most, offer.Count/uint32(request.Amount/terms.WholeDevice))
		}
	}
	if q.Spec.PerNodeMax > 0 {
		most = min(most, q.Spec.PerNodeMax)
	}
	return most
}

// Most returns how many instances of the task a node may run by its rules, whatever room it has.
func (q *Search) Most(n facts.NodeIndex) uint32 {
	node := q.s.Node(n)
	if !q.exclusive && node.Offer.Exclusive() {
		return 0
	}
	if !q.ruled(node) {
		return 0
	}
	most := q.spot.at(n, q.offers(node, terms.InstancesMax))
	if bound := q.Spec.PerNodeMax; bound > 0 {
		most = min(most, bound-min(bound, q.s.OwnInstances(q.key, n)))
	}
	for _, port := range q.Spec.Ports {
		if port.Number != 0 {
			most = min(most, 1)
		}
	}
	return most
}

// Seat places instances on a node one after the other, as long as that takes them, and tells whether it took all.
func (q *Search) Seat(n facts.NodeIndex, count uint32) bool {
	for range count {
		if q.times(n, 1) == 0 || !q.ruled(q.s.Node(n)) {
			return false
		}
		q.assign(n, min(1, q.task().Waits()))
	}
	return true
}

// ruled tells whether the rules of the task hold on a node, all or those that are not soft any more.
func (q *Search) ruled(node *cluster.Node) (able bool) {
	for phase := range q.phases() {
		q.enter(phase)
		able = able || q.allowed(node)
	}
	return able
}

// Enough tells, at little cost, whether nodes may have room for so many instances of the task; if not they have not.
func (q *Search) Enough(count uint32) bool {
	for page := range q.s.RoomPages() {
		for _, kept := range q.purposes() {
			for nodes := q.fitting(page, kept); nodes != 0 && count > 0; nodes &= nodes - 1 {
				free := q.s.Free(nodeOf(page, nodes))
				count -= min(count, q.Spec.Resources.Times(&free, count))
			}
			if count == 0 {
				return true
			}
		}
	}
	return false
}
