package preempt

import "starling/terms"

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
