package promises

import (
	"slices"

	"starling/cluster"
	"starling/terms"
	"starling/terms/pool"
	"starling/terms/rules"
)

// kept is what all pools hold and keep together, of a cluster of such pools and machines.
type kept struct {
	quotas   []quotas
	capacity terms.Amounts
	claimed  terms.Amounts
}

type quotas struct {
	path terms.PoolPath
	of   [terms.AmountCount]terms.Quota
}

// checkStatic checks that nobody takes what static reservations keep for others: what is held and kept together grows
// beyond the machines only with other pools or machines.
func (p *Watch) checkStatic(s *cluster.State) {
	before, now, specs := p.kept, kept{capacity: s.Capacity(), claimed: Claimed(s)}, s.Pools()
	for i := range specs {
		now.quotas = append(now.quotas, quotas{specs[i].Path, specs[i].Quotas})
	}
	p.kept = now
	if s.Rules < rules.StaticKept || now.capacity != before.capacity || !slices.Equal(now.quotas, before.quotas) {
		return
	}
	for k := range terms.AmountCount {
		reserved := int64(0)
		for i, parent := range pool.Tree(specs).Parents() {
			if parent == pool.Root {
				reserved += specs[i].Quotas[k].Reservation
			}
		}
		if all := now.claimed[k]; reserved <= now.capacity[k] && all > max(now.capacity[k], before.claimed[k]) {
			p.fail("%d of %v is held or kept by a static reservation, %d before, of %d", all, k, before.claimed[k],
				now.capacity[k])
		}
	}
}

// Claimed returns what all pools hold, each at least as much as its static reservation keeps.
func Claimed(s *cluster.State) (all terms.Amounts) {
	specs := s.Pools()
	parents, own := pool.Tree(specs).Parents(), make([]terms.Amounts, len(specs))
	for i := len(specs) - 1; i >= 0; i-- {
		held := s.Account(i).Held
		for k := range terms.AmountCount {
			if own[i][k] += held.NonSlack[k]; !k.Overcommitted() {
				own[i][k] += held.Slack[k]
			}
			if q := specs[i].Quotas[k]; q.Static {
				own[i][k] = max(own[i][k], q.Reservation)
			}
			if parents[i] == pool.Root {
				all[k] += own[i][k]
			} else {
				own[parents[i]][k] += own[i][k]
			}
		}
	}
	return all
}
