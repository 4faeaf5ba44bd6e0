// Package room holds what placement scans: what nodes have left, for 64 of them side by side.
package room

import (
	"math/bits"

	"starling/cluster/division"
	"starling/cluster/facts"
	"starling/cluster/vector"
	"starling/terms"
)

// Rooms is what all nodes have left, in pages that copies of a value share until one changes. The zero Rooms has no
// nodes.
type Rooms struct {
	pages []*page
	epoch *vector.Epoch
}

// page is the free resources of 64 nodes side by side.
type page struct {
	epoch *vector.Epoch
	free  [vector.PageRows]terms.Resources
	// eligible has a bit for every node that takes work, nodes one for every node, by what it is kept for.
	eligible uint64
	nodes    [terms.PurposeCount]uint64
	// most is at least the free resources of every eligible node, by what it is kept for.
	most [terms.PurposeCount]terms.Resources
}

// Pages returns the number of pages that nodes are on.
func (r *Rooms) Pages() int { return len(r.pages) }

// Free returns what the node has left; after an offer shrank below what runs there it can be negative.
func (r *Rooms) Free(n facts.NodeIndex) terms.Resources {
	if p := int(n) / vector.PageRows; p < len(r.pages) {
		return r.pages[p].free[n%vector.PageRows]
	}
	return terms.Resources{}
}

// Eligible tells whether the node takes work.
func (r *Rooms) Eligible(n facts.NodeIndex) bool {
	p := int(n) / vector.PageRows
	return p < len(r.pages) && r.pages[p].eligible&(1<<(n%vector.PageRows)) != 0
}

// edit returns the page of a node for changing in an epoch.
func (r *Rooms) edit(e *vector.Epoch, n facts.NodeIndex) *page {
	if r.epoch != e {
		r.pages = append(make([]*page, 0, len(r.pages)+1), r.pages...)
		r.epoch = e
	}
	at := int(n) / vector.PageRows
	for len(r.pages) <= at {
		r.pages = append(r.pages, &page{epoch: e})
	}
	p := r.pages[at]
	if p.epoch != e {
		clone := *p
		clone.epoch = e
		p = &clone
		r.pages[at] = p
	}
	return p
}

// Set replaces what a node has left and whether it takes work.
func (r *Rooms) Set(e *vector.Epoch, n facts.NodeIndex, free terms.Resources, eligible bool) {
	p := r.edit(e, n)
	bit := uint64(1) << (n % vector.PageRows)
	p.free[n%vector.PageRows] = free
	if !eligible {
		p.eligible &^= bit
		return
	}
	p.eligible |= bit
	most := &p.most[p.purpose(n)]
	for k := range free {
		most[k] = max(most[k], free[k])
	}
}

// Take subtracts from what a node has left.
func (r *Rooms) Take(e *vector.Epoch, n facts.NodeIndex, amount terms.Resources) {
	p := r.edit(e, n)
	p.free[n%vector.PageRows] = p.free[n%vector.PageRows].Minus(amount)
}

// SetPurpose notes for what a node is kept.
func (r *Rooms) SetPurpose(e *vector.Epoch, n facts.NodeIndex, purpose terms.Purpose) {
	p := r.edit(e, n)
	for kept := range p.nodes {
		p.nodes[kept] &^= 1 << (n % vector.PageRows)
	}
	p.nodes[purpose] |= 1 << (n % vector.PageRows)
}

// purpose returns for what a node of the page is kept.
func (p *page) purpose(n facts.NodeIndex) terms.Purpose {
	for kept := range p.nodes {
		if p.nodes[kept]&(1<<(n%vector.PageRows)) != 0 {
			return terms.Purpose(kept)
		}
	}
	return terms.AnyWork
}

// Fitting returns those nodes of a page of 64, one bit each from the first on, that are kept for a purpose, take work
// and have the resources free. If none has, that takes constant time, unless the bound of the page is loose: then
// Tighten it.
func (r *Rooms) Fitting(at int, kept terms.Purpose, need *terms.Resources) (nodes uint64, loose bool) {
	p := r.pages[at]
	all := p.eligible & p.nodes[kept]
	if all == 0 || !need.Fits(&p.most[kept]) {
		return 0, false
	}
	for ; all != 0; all &= all - 1 {
		if i := bits.TrailingZeros64(all); need.Fits(&p.free[i]) {
			nodes |= 1 << i
		}
	}
	return nodes, nodes == 0
}

// Tighten makes a page's upper bound for a purpose exact, so that the next search passes it over.
func (r *Rooms) Tighten(e *vector.Epoch, at int, kept terms.Purpose) {
	p := r.edit(e, facts.NodeIndex(at*vector.PageRows))
	most := &p.most[kept]
	*most = terms.Resources{}
	for nodes := p.eligible & p.nodes[kept]; nodes != 0; nodes &= nodes - 1 {
		for k, free := range p.free[bits.TrailingZeros64(nodes)] {
			most[k] = max(most[k], free)
		}
	}
}

// EachOf visits, in order, those of some nodes of a page that are kept for a purpose, take work and have the resources
// free.
func (r *Rooms) EachOf(some division.Page, kept terms.Purpose, need *terms.Resources, visit func(facts.NodeIndex)) {
	p := r.pages[some.Page]
	if !need.Fits(&p.most[kept]) {
		return
	}
	for nodes := some.Nodes & p.eligible & p.nodes[kept]; nodes != 0; nodes &= nodes - 1 {
		if i := bits.TrailingZeros64(nodes); need.Fits(&p.free[i]) {
			visit(facts.NodeIndex(some.Page*vector.PageRows + i))
		}
	}
}
