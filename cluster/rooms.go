package cluster

import (
	"math/bits"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/vector"
	"starling/terms"
)

// free returns what the node has left.
func (s *State) free(n facts.NodeIndex) terms.Resources {
	if p := int(n) / vector.PageRows; p < len(s.rooms) {
		return s.rooms[p].free[n%vector.PageRows]
	}
	return terms.Resources{}
}

// Free returns what the node has left; after an offer shrank below what runs there it can be negative.
func (s *State) Free(n facts.NodeIndex) terms.Resources { return s.free(n) }

// Yields returns what the node would have free if all work were done that ends by itself.
func (s *State) Yields(n facts.NodeIndex) terms.Resources {
	row := s.Node(n)
	return row.Offer.Capacity.Minus(row.lasting)
}

// editRoom returns the page of a node for changing.
func (s *State) editRoom(n facts.NodeIndex) *room {
	if s.roomsOwner != s.edition {
		s.rooms = append(make([]*room, 0, len(s.rooms)+1), s.rooms...)
		s.roomsOwner = s.edition
	}
	at := int(n) / vector.PageRows
	for len(s.rooms) <= at {
		s.rooms = append(s.rooms, &room{edition: s.edition})
	}
	r := s.rooms[at]
	if r.edition != s.edition {
		clone := *r
		clone.edition = s.edition
		r = &clone
		s.rooms[at] = r
	}
	return r
}

// setFree replaces what the node has left and whether it takes work, and notes that it may have grown.
func (s *State) setFree(n facts.NodeIndex, free terms.Resources, eligible bool) {
	r := s.editRoom(n)
	bit := uint64(1) << (n % vector.PageRows)
	r.free[n%vector.PageRows] = free
	if !eligible {
		r.eligible &^= bit
		return
	}
	r.eligible |= bit
	most := &r.most[r.purpose(n)]
	for k := range free {
		most[k] = max(most[k], free[k])
	}
	s.Grown = append(s.Grown, n)
}

// take subtracts from what the node has left.
func (s *State) take(n facts.NodeIndex, amount terms.Resources) {
	r := s.editRoom(n)
	r.free[n%vector.PageRows] = r.free[n%vector.PageRows].Minus(amount)
}

// Eligible tells whether the node takes work.
func (s *State) Eligible(n facts.NodeIndex) bool {
	p := int(n) / vector.PageRows
	return p < len(s.rooms) && s.rooms[p].eligible&(1<<(n%vector.PageRows)) != 0
}

// NodesPerPage is how many nodes make a page.
const NodesPerPage = vector.PageRows

// RoomPages returns the number of pages that nodes are on.
func (s *State) RoomPages() int { return len(s.rooms) }

// setPurpose notes for whom the node is kept.
func (s *State) setPurpose(n facts.NodeIndex, purpose terms.Purpose) {
	r := s.editRoom(n)
	for p := range r.nodes {
		r.nodes[p] &^= 1 << (n % vector.PageRows)
	}
	r.nodes[purpose] |= 1 << (n % vector.PageRows)
}

// purpose returns for whom a node of the page is kept.
func (r *room) purpose(n facts.NodeIndex) terms.Purpose {
	for p := range r.nodes {
		if r.nodes[p]&(1<<(n%vector.PageRows)) != 0 {
			return terms.Purpose(p)
		}
	}
	return terms.AnyWork
}

// Fitting returns those nodes of a page of 64, one bit each from the first on, that are kept for a purpose, take work and
// have the resources free. If none has, that takes constant time, unless the bound of the page is loose: then Tighten it.
func (s *State) Fitting(page int, kept terms.Purpose, need *terms.Resources) (nodes uint64, loose bool) {
	r := s.rooms[page]
	all := r.eligible & r.nodes[kept]
	if all == 0 || !need.Fits(&r.most[kept]) {
		return 0, false
	}
	for ; all != 0; all &= all - 1 {
		if i := bits.TrailingZeros64(all); need.Fits(&r.free[i]) {
			nodes |= 1 << i
		}
	}
	return nodes, nodes == 0
}

// Tighten makes a page's upper bound for a purpose exact, so that the next search passes it over.
func (s *State) Tighten(page int, kept terms.Purpose) {
	r := s.editRoom(facts.NodeIndex(page * vector.PageRows))
	most := &r.most[kept]
	*most = terms.Resources{}
	for nodes := r.eligible & r.nodes[kept]; nodes != 0; nodes &= nodes - 1 {
		for k, free := range r.free[bits.TrailingZeros64(nodes)] {
			most[k] = max(most[k], free)
		}
	}
}

// TakeGrown returns the pages with nodes that got more room since it was called last, in order and each once.
func (s *State) TakeGrown() []int {
	pages := make([]int, len(s.Grown))
	for i, n := range s.Grown {
		pages[i] = int(n) / vector.PageRows
	}
	s.Grown = s.Grown[:0]
	slices.Sort(pages)
	return slices.Compact(pages)
}

// hold takes the room of a slot's allocation on its node, and gives it ports and devices.
func (s *State) hold(j *Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	free := s.free(n)
	assert(spec.Resources.Fits(&free), "a node that gives room has it")
	s.Holds++
	if len(spec.Ports)+len(spec.Devices) > 0 {
		s.changeNode(n, func(row *Node) { row.Give(j.Spec, spec, r) })
	}
	s.occupy(j, spec, r, n)
}

// occupy takes the room of a slot's allocation, which has its ports and devices.
func (s *State) occupy(j *Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	before := s.free(n)
	s.take(n, spec.Resources)
	row := s.editNode(n)
	if j.Spec.Type != terms.Batch {
		row.lasting = row.lasting.Plus(spec.Resources)
	}
	row.Held = append(row.Held, r)
	if len(spec.Labels) > 0 || countsOwn(spec) {
		s.countHead(spec, r, n, 1)
	}
	s.countShape(spec, 1)
	s.countMoved(row, spec, before)
}

// countMoved counts what a node gives to pools after room was taken or given back there. Usually that is the same: held
// is what was free.
func (s *State) countMoved(row *Node, spec *terms.Task, before terms.Resources) {
	after := s.free(row.Index)
	if slices.Min(before[:]) < 0 || slices.Min(after[:]) < 0 || len(spec.Devices) > 0 || row.claimed != (terms.Amounts{}) || !s.Eligible(row.Index) {
		s.countGiven(row.Index)
	}
}

// release gives back what hold took.
func (s *State) release(j *Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	before := s.free(n)
	s.setFree(n, s.free(n).Plus(spec.Resources), s.Eligible(n))
	row := s.editNode(n)
	if j.Spec.Type != terms.Batch {
		row.lasting = row.lasting.Minus(spec.Resources)
		assert(slices.Min(row.lasting[:]) >= 0, "what services hold is not negative")
	}
	last, at := len(row.Held)-1, slices.Index(row.Held, r)
	assert(at >= 0, "room that is given back was held")
	row.Held[at] = row.Held[last]
	row.Held = row.Held[:last]
	if len(spec.Labels) > 0 || countsOwn(spec) {
		s.countHead(spec, r, n, -1)
	}
	s.countShape(spec, -1)
	if len(spec.Ports)+len(spec.Devices) > 0 {
		s.changeNode(n, func(row *Node) { row.TakeBack(r) })
	}
	s.countMoved(row, spec, before)
}
