package preempt

import (
	"slices"

	"starling/cluster"
)

// Shed returns which victims bring down what is held by so much, in their order: those that are revocable the slack, the
// others the rest. One goes only if it brings down what is still left to go; nobody else is asked for.
func Shed(victims []Victim, slack, nonSlack cluster.Amounts) []int {
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
		subtract(left, &v.Need)
		return false
	})
}

// lessens tells whether an amount has something of what is left of another.
func lessens(need, left *cluster.Amounts) bool {
	for k := range need {
		if need[k] > 0 && left[k] > 0 {
			return true
		}
	}
	return false
}

func add(to, amount *cluster.Amounts) {
	for k := range to {
		to[k] += amount[k]
	}
}

func subtract(from, amount *cluster.Amounts) {
	for k := range from {
		from[k] -= amount[k]
	}
}

// fits tells whether a need can be taken from what is free.
func fits(need, free *cluster.Amounts) bool {
	for k := range need {
		if need[k] > free[k] {
			return false
		}
	}
	return true
}
