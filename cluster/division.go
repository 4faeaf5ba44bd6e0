package cluster

import (
	"math/bits"
	"slices"

	"starling/cluster/vector"
	"starling/terms"
)

// Division tells which nodes have which value of an attribute. It is never changed.
type Division struct {
	attribute string
	// Values are ordered; nodes without the attribute have "".
	Values []string
	// Pages are, for each value, the nodes that have it.
	Pages [][]NodePage
}

// NodePage is a set of nodes of one page.
type NodePage struct {
	Page  int
	Nodes uint64
}

// EnsureDivision returns which nodes have which value of an attribute, and keeps that until a node offers something else.
func (s *State) EnsureDivision(attribute string) *Division {
	for _, d := range s.divisions {
		if d.attribute == attribute {
			return d
		}
	}
	d := &Division{attribute: attribute}
	for n := range NodeIndex(s.Nodes()) {
		if s.Node(n).Offer != nil {
			d.add(s.valueOn(n, attribute), n)
		}
	}
	s.divisions = append(slices.Clone(s.divisions), d)
	return d
}

// add adds a node, which must be behind those added before.
func (d *Division) add(value string, n NodeIndex) {
	at, found := slices.BinarySearch(d.Values, value)
	if !found {
		d.Values, d.Pages = slices.Insert(d.Values, at, value), slices.Insert(d.Pages, at, nil)
	}
	pages, page, bit := &d.Pages[at], int(n)/vector.PageRows, uint64(1)<<(n%vector.PageRows)
	if last := len(*pages) - 1; last >= 0 && (*pages)[last].Page == page {
		(*pages)[last].Nodes |= bit
		return
	}
	*pages = append(*pages, NodePage{Page: page, Nodes: bit})
}

// EachRoomOf visits, in order, those of some nodes of a page that are kept for a purpose, take work and have the resources
// free.
func (s *State) EachRoomOf(some NodePage, kept terms.Purpose, need *terms.Resources, visit func(n NodeIndex)) {
	r := s.rooms[some.Page]
	if !need.Fits(&r.most[kept]) {
		return
	}
	for nodes := some.Nodes & r.eligible & r.nodes[kept]; nodes != 0; nodes &= nodes - 1 {
		if i := bits.TrailingZeros64(nodes); need.Fits(&r.free[i]) {
			visit(NodeIndex(some.Page*vector.PageRows + i))
		}
	}
}
