package jobs

import (
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
)

// TestWatchUpdate shows an update to somebody without a terminal: what has changed, a line each.
func TestWatchUpdate(t *testing.T) {
	out := &strings.Builder{}
	p := console.NewProgress(&console.Console{Err: out}, nil)
	status := &starlingv1.JobStatusResponse{
		Job: &starlingv1.Job{Name: "web", Update: &starlingv1.Update{State: "ROLLING_FORWARD", From: 1, To: 2}},
		Slots: []*starlingv1.Slot{
			{Task: "main", Seat: "main", Version: 2, Phase: "running", Health: "ready", Node: "a",
				WaitsFor: "its health, at 2026-03-01T06:00:05Z"},
			{Task: "main", Seat: "main", Number: 1, Version: 1, Phase: "running", Health: "healthy", Node: "b",
				WaitsFor: "its turn"},
			{Task: "main", Seat: "canary", Number: 1, Phase: "waiting", Health: "starting", WaitsFor: "a machine"},
		},
	}
	watchUpdate(p, status)
	status.GetSlots()[0].Health, status.GetSlots()[0].WaitsFor = "healthy", ""
	watchUpdate(p, status)
	want := []string{
		"web: update to version 2 rolling forward, 0 of 3 instances done",
		"main[0]: version 2, running on a, ready, waits for its health, at " + console.Times("2026-03-01T06:00:05Z", time.Now()),
		"main[1]: version 1 -> 2, running on b, healthy, waits for its turn",
		"main[1] canary: version 2, waiting, waits for a machine",
		"web: update to version 2 rolling forward, 1 of 3 instances done",
		"main[0]: version 2, running on a, healthy",
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i := range got {
		_, got[i], _ = strings.Cut(got[i], "  ") // the time
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDetachedEndsAll has Ctrl-C come while the second of three jobs is followed.
func TestDetachedEndsAll(t *testing.T) {
	var done []string
	err := each([]string{"a", "b", "c"}, func(job string) error {
		done = append(done, job)
		if job == "b" {
			return exit.Silent(exit.Detached)
		}
		return nil
	})
	if exit.StatusOf(err) != exit.Detached || len(done) != 2 {
		t.Errorf("got %v after %v, want that it ends with b", err, done)
	}
}
