package console

import (
	"testing"
	"time"
)

func TestDash(t *testing.T) {
	for _, c := range []struct{ got, want string }{{Dash(""), "-"}, {Dash("a"), "a"}} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 24, 23, 59, 0, 0, time.Local)
	for _, c := range []struct {
		in   time.Duration
		want string
	}{{30 * time.Second, "23:59:30"}, {time.Minute, "2026-11-25 00:00:00"}, {-24 * time.Hour, "2026-11-23 23:59:00"}} {
		if got := Clock(now.Add(c.in).UTC(), now); got != c.want {
			t.Errorf("in %v it is %s, want %s", c.in, got, c.want)
		}
	}
}
