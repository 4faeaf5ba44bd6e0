package entitle

import (
	"slices"

	"starling/cluster"
	"starling/terms"
	"starling/terms/pool"
)

// Memory is where the entitlements of one value after the other are computed, so that little is allocated.
type Memory struct {
	in     Input
	ledger ledger
	all    []Entitlement
	// parents are those of the pools of specs, which are replaced and never changed.
	specs   []terms.Pool
	parents []int
}

// Entitlements returns what each pool of a value may use, until it is asked again.
func (m *Memory) Entitlements(s *cluster.State) []Entitlement {
	m.read(s)
	m.ledger.reset(&m.in, nil)
	m.ledger.divide()
	m.all = m.ledger.entitlements(m.all)
	return m.all
}

// Of returns all that the entitlements depend on in a value.
func Of(s *cluster.State) *Input {
	m := new(Memory)
	m.read(s)
	return &m.in
}

// read reads all that the entitlements depend on.
func (m *Memory) read(s *cluster.State) {
	specs, in := s.Pools(), &m.in
	if len(specs) != len(m.specs) || len(specs) > 0 && &specs[0] != &m.specs[0] {
		m.specs, m.parents = specs, pool.Tree(specs).Parents()
	}
	*in = Input{Capacity: s.Capacity(), Pools: slices.Grow(in.Pools[:0], len(specs))[:len(specs)]}
	for i, parent := range m.parents {
		account := s.Account(i)
		in.Pools[i] = Pool{Parent: parent, Spec: &specs[i], Allocated: account.Held, Demand: account.Asked}
		for k := range in.Slack {
			in.Slack[k] += account.Held.NonSlack[k]
		}
	}
	// What revocable work may have beyond all entitlements is what no other holds.
	for k := range in.Slack {
		if in.Slack[k] = max(in.Capacity[k]-in.Slack[k], 0); !terms.Kind(k).Overcommitted() {
			in.Slack[k] = 0
		}
	}
}
