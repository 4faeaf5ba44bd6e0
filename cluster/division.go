package cluster

import (
	"math/bits"
	"slices"

	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/vector"
	"starling/terms"
)

// Division tells which nodes have which value of an attribute.
type Division = division.Division[facts.NodeIndex]

// EnsureDivision returns which nodes have which value of an attribute, and keeps that until a node offers something else.
func (s *State) EnsureDivision(attribute string) *Division {
	for _, d := range s.divisions {
		if d.Attribute == attribute {
			return d
		}
	}
	d := &Division{Attribute: attribute}
	for n := range facts.NodeIndex(s.Nodes()) {
		if s.Node(n).Offer != nil {
			d.Add(s.valueOn(n, attribute), n)
		}
	}
	s.divisions = append(slices.Clone(s.divisions), d)
	return d
}

// EachRoomOf visits, in order, those of some nodes of a page that are kept for a purpose, take work and have the resources
// free.
func (s *State) EachRoomOf(some division.Page, kept terms.Purpose, need *terms.Resources, visit func(n facts.NodeIndex)) {
	r := s.rooms[some.Page]
	if !need.Fits(&r.most[kept]) {
		return
	}
	for nodes := some.Nodes & r.eligible & r.nodes[kept]; nodes != 0; nodes &= nodes - 1 {
		if i := bits.TrailingZeros64(nodes); need.Fits(&r.free[i]) {
			visit(facts.NodeIndex(some.Page*vector.PageRows + i))
		}
	}
}
