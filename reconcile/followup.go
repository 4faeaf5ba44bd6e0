package reconcile

import (
	"cmp"
	"slices"

	"starling/terms"
)

// followUpWindowMillis is how far apart waits may be that share a follow-up.
const followUpWindowMillis = 5000

// FollowUp tells when slots are to be looked at again, and for what.
type FollowUp struct {
	At   terms.Time
	Kind WaitKind
}

// FollowUps appends to dst the times at which slots must be looked at again: waits of one kind within five seconds share
// the time of the first. It puts the waits in order.
func FollowUps(dst []FollowUp, waits []Wait) []FollowUp {
	slices.SortStableFunc(waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.At, b.At))
	})
	for _, w := range waits {
		last := len(dst) - 1
		if last < 0 || dst[last].Kind != w.Kind || w.At-dst[last].At >= followUpWindowMillis {
			dst = append(dst, FollowUp{w.At, w.Kind})
		}
	}
	return dst
}
