package preempt

import (
	"slices"

	"starling/terms"
)

// Shed returns which victims bring down what is held by so much, in their order: those that are revocable the slack,
// the others the rest. One goes only if it brings down what is still left to go; no other is asked for.
func Shed(victims []Victim, slack, nonSlack terms.Amounts) []int {
	order := make([]int, len(victims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareVictims(&victims[a], &victims[b]) })
	return slices.DeleteFunc(order, func(i int) bool {
		v, left := &victims[i], &nonSlack
		if v.Revocable {
			left = &slack
		}
		if !lessens(&v.Need, left) {
			return true
		}
		left.Add(&v.Need, -1)
		return false
	})
}
