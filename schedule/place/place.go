// Package place answers "on which node does it go?", for instances that wait and are admitted.
//
// Equal instances are placed together, so that the cost is that of the nodes they need and not of the nodes there are.
package place

import (
	"math/bits"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// Visit is called for every slot that was given a node; it may be nil.
type Visit func(facts.SlotRef)

// Among places up to most instances on nodes of the given pages and returns how many it placed.
func (q *Search) Among(pages []int, most uint32) uint32 {
	want, placed := min(q.task().Waits(), most), uint32(0)
	if q.Spec == nil {
		return 0
	}
	if q.domain != nil && q.domain.any && want > 1 {
		// The first decides for the others.
		if placed = q.Among(pages, 1); placed > 0 {
			q.locate()
			placed += q.Among(pages, want-placed)
		}
		return placed
	}
	q.s.Divide(q.key, q.Spec)
	pages = q.spot.among(pages)
	for {
		before := placed
		for phase := range q.phases() {
			q.enter(phase)
			switch {
			case placed == want || q.helps && placed > before:
			case q.ranks():
				placed += q.ranked(pages, q.atOnce(want-placed))
			default:
				placed += q.pack(pages, q.atOnce(want-placed))
			}
		}
		if !q.helps || placed == want || placed == before {
			return placed
		}
	}
}

// best returns the node for one instance among those of the pages.
func (q *Search) best(pages []int) (n facts.NodeIndex, found bool) {
	for phase := range q.phases() {
		q.enter(phase)
		if q.ranks() {
			n, found = q.first(pages)
		} else {
			n, found = q.firstFit(pages)
		}
		if found {
			break
		}
	}
	return n, found
}

// pack places up to want instances on the first pages that have room.
func (q *Search) pack(pages []int, want uint32) (placed uint32) {
	for _, kept := range q.purposes() {
		for _, page := range pages {
			if placed == want {
				return placed
			}
			placed += q.packPage(page, kept, want-placed)
		}
	}
	return placed
}

// packPage places up to want instances on nodes of a page that are kept for a purpose. One that was filled takes no
// more, and the others are as they were, unless rules ask about what the task itself runs.
func (q *Search) packPage(page int, kept terms.Purpose, want uint32) (placed uint32) {
	nodes := q.fitting(page, kept)
	if nodes == 0 {
		return 0
	}
	var t bestFit
	for t.begin(q, page, nodes); placed < want; {
		n, ok := t.next()
		if !ok {
			return placed
		}
		placed += q.fill(n, want-placed)
		if q.minds {
			t.begin(q, page, q.fitting(page, kept))
		}
	}
	return placed
}

// firstFit returns the node that packing takes first.
func (q *Search) firstFit(pages []int) (n facts.NodeIndex, found bool) {
	for _, kept := range q.purposes() {
		for _, page := range pages {
			var t bestFit
			t.begin(q, page, q.fitting(page, kept))
			if n, found = t.next(); found {
				return n, true
			}
		}
	}
	return 0, false
}

// purposes are all, in the order in which nodes that are kept for them are taken.
var purposes = [...]terms.Purpose{terms.ExclusiveWork, terms.AnyWork, terms.DeviceWork}

// purposes returns where instances may go, and where first: nodes that are kept for others come later or not at all.
func (q *Search) purposes() []terms.Purpose {
	all := purposes[:]
	switch {
	case q.exclusive:
		return all
	case slices.ContainsFunc(q.Spec.Devices,
		func(d terms.DeviceRequest) bool { return terms.Rare(d.Kind, q.s.Rules) }):
		return all[2:]
	}
	return all[1:]
}

// fill gives a node as many instances as it takes, at most most.
func (q *Search) fill(n facts.NodeIndex, most uint32) uint32 {
	if q.minds {
		most = 1
	}
	count := q.times(n, most)
	q.assign(n, count)
	if q.minds {
		q.s.Divide(q.key, q.Spec)
	}
	return count
}

// fitting returns the nodes of a page, one bit each, that are kept for a purpose and have the resources. If none has,
// the next search passes the page over.
func (q *Search) fitting(page int, kept terms.Purpose) uint64 {
	q.s.Visit(1)
	nodes, loose := q.s.Fitting(page, kept, &q.Spec.Resources)
	if loose {
		q.s.Tighten(page, kept)
	}
	return nodes
}

// nodeOf returns the first of some nodes of a page.
func nodeOf(page int, nodes uint64) facts.NodeIndex {
	return facts.NodeIndex(page*cluster.NodesPerPage + bits.TrailingZeros64(nodes))
}

// bestFit is the nodes of a page on which the task fits as far as resources go.
type bestFit struct {
	q     *Search
	first facts.NodeIndex
	nodes uint64
	// left is what each would have left, known tells that it was computed.
	left  [cluster.NodesPerPage]int64
	known bool
}

// begin takes nodes of a page that have the resources.
func (t *bestFit) begin(q *Search, page int, nodes uint64) {
	t.q, t.first, t.nodes, t.known = q, facts.NodeIndex(page*cluster.NodesPerPage), nodes, false
	q.s.Visit(bits.OnesCount64(nodes))
}

// next takes out the node that is left the least room on, of those that can run an instance.
func (t *bestFit) next() (n facts.NodeIndex, ok bool) {
	for t.nodes != 0 {
		least := bits.TrailingZeros64(t.nodes)
		for nodes := t.nodes; nodes != 0; nodes &= nodes - 1 {
			i := bits.TrailingZeros64(nodes)
			if !t.known {
				t.left[i] = t.q.left(t.first + facts.NodeIndex(i))
			}
			if t.left[i] < t.left[least] {
				least = i
			}
		}
		t.known = true
		t.nodes &^= 1 << least
		if n = t.first + facts.NodeIndex(least); t.q.simple || t.q.able(n) {
			return n, true
		}
	}
	return 0, false
}

// left is what a node would have left after one instance: 1024ths of its processor and of its memory, together.
func (q *Search) left(n facts.NodeIndex) int64 {
	free, offer := q.s.Free(n), q.s.Node(n).Offer
	score := int64(0)
	for _, k := range [...]terms.Kind{terms.CPU, terms.Memory} {
		if offer.Capacity[k] > 0 {
			score += (free[k] - q.Spec.Resources[k]) / (offer.Capacity[k]>>10 + 1)
		}
	}
	return score
}

// fits tells whether one instance can go to the node.
func (q *Search) fits(n facts.NodeIndex) bool {
	free := q.s.Free(n)
	if !q.s.Eligible(n) || !q.Spec.Resources.Fits(&free) {
		return false
	}
	return (q.exclusive || !q.s.Node(n).Offer.Exclusive()) && q.able(n)
}

// able tells whether a node with enough resources can run an instance as far as rules, devices and ports go.
func (q *Search) able(n facts.NodeIndex) bool {
	q.s.Visit(1)
	return (!q.avoids || n != q.avoided) && q.allowed(q.s.Node(n)) && q.requests(q.s.Node(n), 1) > 0
}

// times returns how many instances the node takes, at most most.
func (q *Search) times(n facts.NodeIndex, most uint32) uint32 {
	free := q.s.Free(n)
	most = q.Spec.Resources.Times(&free, most)
	if q.simple {
		return most
	}
	return q.requests(q.s.Node(n), most)
}

// requests returns for how many instances the node has devices and ports, at most most.
func (q *Search) requests(node *cluster.Node, most uint32) uint32 {
	most = q.spot.at(node.Index, most)
	if bound := q.Spec.PerNodeMax; bound > 0 {
		most = min(most, bound-min(bound, q.s.OwnInstances(q.key, node.Index)))
	}
	for i := range q.Spec.Devices {
		most = node.DeviceTimes(&q.Spec.Devices[i], most)
	}
	return q.ports(node, most)
}

// ports returns for how many instances the node has ports, at most most.
func (q *Search) ports(node *cluster.Node, most uint32) uint32 {
	chosen := 0
	for _, p := range q.Spec.Ports {
		switch {
		case p.Number == 0:
			chosen++
		case node.PortUsed(p.Number):
			return 0
		default:
			most = min(most, 1)
		}
	}
	if chosen == 0 {
		return most
	}
	free := node.PortsFree()
	for _, p := range q.Spec.Ports {
		if p.Number != 0 && p.Number >= node.Offer.PortFirst && p.Number <= node.Offer.PortLast {
			free--
		}
	}
	return min(most, uint32(max(free, 0)/chosen))
}

// Fits tells whether one instance of a task can go to a node now.
func Fits(s *cluster.State, key facts.TaskKey, n facts.NodeIndex) bool {
	return NewSearch(s, key, nil).fitsNow(n)
}

// fitsNow tells whether one instance can go to the node by the rules that hold now.
func (q *Search) fitsNow(n facts.NodeIndex) bool {
	for phase := range q.phases() {
		q.enter(phase)
		if q.fits(n) {
			return true
		}
	}
	return false
}

// Allowed tells whether a node that offers something may run a task as far as the rules go that are not about room.
func Allowed(s *cluster.State, key facts.TaskKey, n facts.NodeIndex) bool {
	q := NewSearch(s, key, nil)
	for phase := range q.phases() {
		q.enter(phase)
		if q.allowed(s.Node(n)) {
			return true
		}
	}
	return false
}

// Suits tells whether what runs on a node satisfies the rules of the newest version of its task there, whatever room is
// left. It must not be counted. Preferences are no rules; neither is it asked in which domain the job is.
func Suits(s *cluster.State, key facts.TaskKey, n facts.NodeIndex) bool {
	id, task := key.Split()
	spec := s.Job(id).TaskSpecOf(task, s.Job(id).Version)
	q := &Search{s: s, key: key, Spec: spec, asked: s.Node(n)}
	if q.asked.Offer == nil || spec.PerNodeMax > 0 && s.OwnInstances(key, n) >= spec.PerNodeMax {
		return false
	}
	may := !q.asked.Offer.Exclusive()
	s.Divide(key, spec)
	for i := range spec.Constraints {
		c := &spec.Constraints[i]
		may = may || c.Mentions(terms.ExclusiveAttribute)
		if !c.Soft && !c.Holds(q) {
			return false
		}
	}
	return may
}
