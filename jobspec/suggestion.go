package jobspec

import "strings"

// nearest returns the name that was probably meant by what was written, "" if none is near.
func nearest(written string, names []string) string {
	const bytesMax = 40
	if len(written) > bytesMax {
		return ""
	}
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
	}
	best, least := "", len(written)/3+1
	for _, name := range names {
		if d := distance(plain(written), plain(name)); d < least || d == 0 {
			best, least = name, d
		}
	}
	return best
}

// didYouMean returns what to add to a message, "" if nothing is known to have been meant.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return " (did you mean " + name + "?)"
}

// distance is the number of letters to insert, drop, replace or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
