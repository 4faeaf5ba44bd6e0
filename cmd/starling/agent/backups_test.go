package agent

import (
	"testing"
	"time"
)

// TestOneMemberIsDue has the first member make the next backup, and the others only if it does not.
func TestOneMemberIsDue(t *testing.T) {
	const every, look = time.Hour, time.Minute
	for _, c := range []struct {
		age  time.Duration
		rank int
		want bool
	}{
		{every - time.Second, 0, false}, {every, 0, true}, {every, 1, false}, {every + look, 1, false},
		{every + 2*look, 1, true}, {every + 2*look, 2, false}, {10 * every, -1, false}, {10 * every, 100, true},
	} {
		if got := isDue(c.age, every, look, c.rank); got != c.want {
			t.Errorf("after %v the member of rank %d: got %t, want %t", c.age, c.rank, got, c.want)
		}
	}
}
