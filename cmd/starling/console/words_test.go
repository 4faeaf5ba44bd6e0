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

// TestTimes has the times within a sentence of a peer as this machine's clock has them.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	soon, later := now.Add(90*time.Second), now.Add(72*time.Hour)
	text := "its restart, at " + at(soon) + ", or web-2026-03-01 until " + at(later) + " (99T2026-99-99T00:00:00Z)"
	want := "its restart, at 12:01:30, or web-2026-03-01 until 2026-03-04 12:00:00 (99T2026-99-99T00:00:00Z)"
	if got := Times(text, now); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
