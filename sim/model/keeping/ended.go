package keeping

import (
	"slices"

	"starling/terms"
	"starling/terms/rules"
)

// Ended is a job that has ended.
type Ended struct {
	Pool  terms.PoolPath
	Kept  bool
	Slots int
}

// Excess returns which of the jobs that have ended, in the order in which they did, is forgotten next; -1 for none.
func Excess(in rules.Number, all []Ended, l *terms.Limits) int {
	slots := func(j Ended) int { return j.Slots }
	one := func(Ended) int { return 1 }
	sum := func(pool *terms.PoolPath, measure func(Ended) int) (n int) {
		for _, j := range all {
			if pool == nil || *pool == j.Pool {
				n += measure(j)
			}
		}
		return n
	}
	measure := one
	switch {
	case len(all) > int(l.FinishedJobs):
	case len(all) > 1 && sum(nil, slots) > int(l.FinishedSlots):
		measure = slots
	default:
		return -1
	}
	if in < rules.PoolsForget {
		return 0
	}
	// The first of each pool: one of whom nothing says for how long, if there is any.
	first := func(pool terms.PoolPath) int {
		for _, kept := range []bool{false, true} {
			if at := slices.IndexFunc(all, func(j Ended) bool { return j.Pool == pool && j.Kept == kept }); at >= 0 {
				return at
			}
		}
		return -1
	}
	best := -1
	for at, j := range all {
		if at == first(j.Pool) && (best < 0 || sum(&j.Pool, measure) > sum(&all[best].Pool, measure)) {
			best = at
		}
	}
	return best
}
