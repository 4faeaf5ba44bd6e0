// Package retries remembers how often a slot has looked for another node after failures, and when lately.
package retries

import (
	"starling/terms"
	"starling/terms/fingerprint"
)

// Attempt is one look for another node.
type Attempt struct {
	At          terms.Time
	DelayMillis uint32
}

// Attempts are those of a slot since it began with a version, or anew. The zero Attempts are none.
type Attempts struct {
	// Made counts all of them.
	Made uint32
	// Latest are the newest, oldest first: what limits and delays depend on.
	Latest []Attempt
}

// Keep returns the attempts with no more than so many of the latest, in a list of its own.
func (a Attempts) Keep(most int) Attempts {
	return Attempts{a.Made, append([]Attempt(nil), a.Latest[max(0, len(a.Latest)-most):]...)}
}

// Within counts those of some attempts that were made within an interval before a time.
func Within(latest []Attempt, intervalMillis uint32, before terms.Time) (count uint32) {
	for i := range latest {
		if before-latest[i].At < terms.Time(intervalMillis) {
			count++
		}
	}
	return count
}

// Mix adds the attempts to a hash.
func (a Attempts) Mix(h uint64) uint64 {
	h = fingerprint.Mix(h, uint64(a.Made))
	for _, one := range a.Latest {
		h = fingerprint.Mix(fingerprint.Mix(h, uint64(one.At)), uint64(one.DelayMillis))
	}
	return h
}
