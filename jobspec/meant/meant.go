// Package meant guesses what somebody meant who wrote a name that there is not.
package meant

import (
	"slices"
	"strings"
)

// elsewhere has the names that other systems have for ours.
func elsewhere() map[string]string {
	return map[string]string{
		"count": "instances", "replicas": "instances", "mem": "memory", "ram": "memory", "cmd": "command", "args": "command",
		"environment": "env", "dependencies": "after", "depends_on": "after", "nodeSelector": "constraints",
	}
}

// Of returns the name that was probably meant by what was written, "" if none is near.
func Of(written string, names []string) string {
	const bytesMax = 40
	if len(written) > bytesMax {
		return ""
	}
	if name := elsewhere()[written]; slices.Contains(names, name) {
		return name
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

// Words returns what to add to a message, "" if nothing is known to have been meant.
func Words(name string) string {
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
