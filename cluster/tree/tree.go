// Package tree holds the tree of resource pools as a value keeps it. A pool has the same account for as long as it is
// there.
package tree

import (
	"math"
	"slices"

	"starling/terms"
	"starling/terms/codec"
	"starling/terms/fingerprint"
)

// ID numbers the account of a pool; 0 is that of no pool.
type ID uint32

// tag keeps the hash apart from others.
const tag uint64 = 12

// Pools is the tree of resource pools as it is kept. It is never changed, but replaced whole.
type Pools struct {
	Version uint32
	// Specs are in the order of a tree, IDs are their accounts; Positions tells where each account's pool stands, -1 for
	// none.
	Specs     []terms.Pool
	IDs       []ID
	Positions []int32
	Hash      uint64
}

// First returns the tree that every cluster begins with: the default pool, without limits.
func First() *Pools {
	p := &Pools{}
	return p.With([]terms.Pool{terms.NewPool(terms.DefaultPool)})
}

// With returns the next version of the tree. Pools that stay keep their accounts, new ones get the lowest that are
// free.
func (p *Pools) With(specs []terms.Pool) *Pools {
	next := &Pools{Version: p.Version + 1, Specs: specs, IDs: make([]ID, len(specs))}
	next.Positions = make([]int32, max(len(p.Positions), 1), len(p.Positions)+len(specs)+1)
	for i := range next.Positions {
		next.Positions[i] = -1
	}
	for i := range specs {
		if at, found := p.Find(specs[i].Path); found {
			next.IDs[i] = p.IDs[at]
			next.Positions[p.IDs[at]] = int32(i)
		}
	}
	free := ID(1)
	for i := range specs {
		if next.IDs[i] != 0 {
			continue
		}
		for int(free) < len(next.Positions) && next.Positions[free] >= 0 {
			free++
		}
		if int(free) == len(next.Positions) {
			next.Positions = append(next.Positions, -1)
		}
		next.IDs[i], next.Positions[free] = free, int32(i)
	}
	next.hash()
	return next
}

// Code writes or reads the tree.
func (p *Pools) Code(c *codec.Coder) {
	codec.Uint32s(c, &p.Version)
	codec.List(c, &p.Specs, math.MaxUint16, func(c *codec.Coder, s *terms.Pool) { s.Code(c) })
	accounts := uint64(len(p.Positions))
	c.Number(&accounts, math.MaxUint16)
	if !c.Writing {
		p.IDs, p.Positions = make([]ID, len(p.Specs)), make([]int32, accounts)
		for i := range p.Positions {
			p.Positions[i] = -1
		}
	}
	for i := range p.IDs {
		codec.Integer(c, &p.IDs[i], math.MaxUint16)
		switch {
		case c.Writing || c.Failure != "":
		case uint64(p.IDs[i]) >= accounts:
			c.Fail("has pool %s at account %d of %d", p.Specs[i].Path, p.IDs[i], accounts)
		default:
			p.Positions[p.IDs[i]] = int32(i)
		}
	}
	if !c.Writing { // who writes it shares it with others
		p.hash()
	}
}

// hash sets the hash of the tree.
func (p *Pools) hash() {
	p.Hash = fingerprint.Words(tag, uint64(p.Version))
	for i := range p.Specs {
		p.Hash = fingerprint.Mix(p.Hash, fingerprint.Pool(&p.Specs[i]))
	}
}

// Find returns where a pool stands.
func (p *Pools) Find(path terms.PoolPath) (int, bool) {
	return slices.BinarySearchFunc(p.Specs, path,
		func(s terms.Pool, path terms.PoolPath) int { return s.Path.Compare(path) })
}
