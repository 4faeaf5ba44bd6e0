package cluster

import (
	"slices"

	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/shapes"
	"starling/cluster/vector"
	"starling/cluster/workload"
	"starling/terms"
)

// Free returns what the node has left; after an offer shrank below what runs there it can be negative.
func (s *State) Free(n facts.NodeIndex) terms.Resources { return s.rooms.Free(n) }

// Eligible tells whether the node takes work.
func (s *State) Eligible(n facts.NodeIndex) bool { return s.rooms.Eligible(n) }

// NodesPerPage is how many nodes make a page.
const NodesPerPage = vector.PageRows

// RoomPages returns the number of pages that nodes are on.
func (s *State) RoomPages() int { return s.rooms.Pages() }

// Fitting returns those nodes of a page, one bit each from the first on, that are kept for a purpose, take work and
// have the resources free, and whether the bound of the page is loose: then Tighten it.
func (s *State) Fitting(page int, kept terms.Purpose, need *terms.Resources) (nodes uint64, loose bool) {
	return s.rooms.Fitting(page, kept, need)
}

// EachRoomOf visits, in order, those of some nodes of a page that are kept for a purpose, take work and have the
// resources free.
func (s *State) EachRoomOf(some division.Page, kept terms.Purpose, need *terms.Resources, visit func(facts.NodeIndex)) {
	s.rooms.EachOf(some, kept, need, visit)
}

// Tighten makes the upper bound of a page of rooms exact, so that the next search passes it over.
func (s *State) Tighten(page int, kept terms.Purpose) { s.rooms.Tighten(s.epoch, page, kept) }

// setFree replaces what the node has left and whether it takes work, and notes that it may have grown.
func (s *State) setFree(n facts.NodeIndex, free terms.Resources, eligible bool) {
	if s.rooms.Set(s.epoch, n, free, eligible); eligible {
		s.DirtyNodes = append(s.DirtyNodes, n)
	}
}

// Yields returns what the node would have free if all work were done that ends by itself.
func (s *State) Yields(n facts.NodeIndex) terms.Resources {
	row := s.Node(n)
	return row.Offer.Capacity.Minus(row.lasting)
}

// TakeDirtyPages returns the pages with nodes that got more room since it was called last, in order and each once.
func (s *State) TakeDirtyPages() []int {
	pages := make([]int, len(s.DirtyNodes))
	for i, n := range s.DirtyNodes {
		pages[i] = int(n) / vector.PageRows
	}
	s.DirtyNodes = s.DirtyNodes[:0]
	slices.Sort(pages)
	return slices.Compact(pages)
}

// hold takes the room of a slot's allocation on its node, and gives it ports and devices.
func (s *State) hold(j *workload.Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	free := s.Free(n)
	facts.Assert(spec.Resources.Fits(&free), "a node that gives room has it")
	s.Holds++
	if len(spec.Ports)+len(spec.Devices) > 0 {
		s.changeNode(n, func(row *Node) { row.Give(j.Spec, spec, r) })
	}
	s.occupy(j, spec, r, n)
}

// occupy takes the room of a slot's allocation, which has its ports and devices.
func (s *State) occupy(j *workload.Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	before := s.Free(n)
	s.rooms.Take(s.epoch, n, spec.Resources)
	row := s.editNode(n)
	if j.Spec.Type != terms.Batch {
		row.lasting = row.lasting.Plus(spec.Resources)
	}
	row.Held = append(row.Held, r)
	if len(spec.Labels) > 0 || countsOwn(spec) {
		s.countAt(spec, r, n, 1)
	}
	s.shapes.Count(spec, 1)
	s.countMoved(row, spec, before)
}

// countMoved counts what a node gives to pools after room was taken or given back there. Usually that is the same: held
// is what was free.
func (s *State) countMoved(row *Node, spec *terms.Task, before terms.Resources) {
	after := s.Free(row.Index)
	if slices.Min(before[:]) < 0 || slices.Min(after[:]) < 0 || len(spec.Devices) > 0 ||
		row.nominated != (terms.Amounts{}) || !s.Eligible(row.Index) {
		s.countGiven(row.Index)
	}
}

// release gives back what hold took.
func (s *State) release(j *workload.Job, spec *terms.Task, r facts.SlotRef, n facts.NodeIndex) {
	before := s.Free(n)
	s.setFree(n, s.Free(n).Plus(spec.Resources), s.Eligible(n))
	row := s.editNode(n)
	if j.Spec.Type != terms.Batch {
		row.lasting = row.lasting.Minus(spec.Resources)
		facts.Assert(slices.Min(row.lasting[:]) >= 0, "what services hold is not negative")
	}
	last, at := len(row.Held)-1, slices.Index(row.Held, r)
	facts.Assert(at >= 0, "room that is given back was held")
	row.Held[at] = row.Held[last]
	row.Held = row.Held[:last]
	if len(spec.Labels) > 0 || countsOwn(spec) {
		s.countAt(spec, r, n, -1)
	}
	s.shapes.Count(spec, -1)
	if len(spec.Ports)+len(spec.Devices) > 0 {
		s.changeNode(n, func(row *Node) { row.TakeBack(r) })
	}
	s.countMoved(row, spec, before)
}

// CopyShapes returns what holds devices at this moment, in constant time; it does not change with the value. Like Copy,
// it marks s.
func (s *State) CopyShapes() shapes.Table { return s.shapes.Copy() }
