package preempt

import "starling/terms"

// add adds so many times an amount.
func add(to, amount *terms.Amounts, by int64) {
	for k := range to {
		to[k] += amount[k] * by
	}
}

// fits tells whether a need can be taken from what is free.
func fits(need, free *terms.Amounts) bool {
	for k := range need {
		if need[k] > free[k] {
			return false
		}
	}
	return true
}

// lessens tells whether an amount has something of what is left of another.
func lessens(need, left *terms.Amounts) bool {
	for k := range need {
		if need[k] > 0 && left[k] > 0 {
			return true
		}
	}
	return false
}

// times returns how often a need fits into an amount, at most most, as far as the kinds go that are needed.
func times(need, into *terms.Amounts, most uint32) uint32 {
	count := int64(most)
	for k := range need {
		if need[k] > 0 {
			count = min(count, into[k]/need[k])
		}
	}
	return uint32(max(count, 0))
}
