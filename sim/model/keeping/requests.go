package keeping

import (
	"slices"

	"starling/terms/access"
	"starling/terms/rules"
)

// Request is one that is remembered.
type Request struct {
	ID      string
	Refused bool
}

// Remember returns those of some requests that are remembered, the oldest first.
func Remember(in rules.Number, all []Request, most uint32) []Request {
	for len(all) > int(most) {
		count, forgotten := map[string]int{}, 0
		for _, r := range all {
			count[access.Asker(r.ID)]++
		}
		for i, r := range all {
			if in >= rules.PoolShares && count[access.Asker(r.ID)] > count[access.Asker(all[forgotten].ID)] {
				forgotten = i
			}
		}
		all = slices.Delete(all, forgotten, forgotten+1)
	}
	return all
}
