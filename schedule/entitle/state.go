package entitle

import (
	"starling/cluster"
	"starling/terms"
	"starling/terms/pool"
)

// Of returns all that the entitlements depend on in a value.
func Of(s *cluster.State) *Input {
	specs := s.Pools()
	in := &Input{Capacity: s.Capacity(), Pools: make([]Pool, len(specs))}
	for i, parent := range pool.Tree(specs).Parents() {
		account := s.Account(i)
		in.Pools[i] = Pool{Parent: parent, Spec: &specs[i], Allocated: account.Held, Demand: account.Asked}
		for k := range in.Slack {
			in.Slack[k] += account.Held.NonSlack[k]
		}
	}
	// What revocable work may have beyond all entitlements is what nobody else holds.
	for k := range in.Slack {
		if in.Slack[k] = max(in.Capacity[k]-in.Slack[k], 0); !terms.Kind(k).Overcommitted() {
			in.Slack[k] = 0
		}
	}
	return in
}
