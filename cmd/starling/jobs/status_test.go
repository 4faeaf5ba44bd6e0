package jobs

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
)

func TestJobWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{span(-time.Second), "0s"}, {span(59 * time.Second), "59s"}, {span(61 * time.Second), "1m01s"},
		{span(25 * time.Hour), "1d01h"}, {span(90 * time.Minute), "1h30m"},
		{tally(nil), "no instances"}, {tally(&starlingv1.Counts{Running: 2, Waiting: 1}), "2 running, 1 waiting"},
		{tally(&starlingv1.Counts{Running: 1, Rescheduling: 1, BackingOff: 1}), "1 running, 1 backing off, 1 rescheduling"},
		{age(nil, time.Time{}), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestSuspendedIsSettled lets nobody wait for a job of which nothing is wanted, once nothing of it runs any more.
func TestSuspendedIsSettled(t *testing.T) {
	for _, c := range []struct {
		job  *starlingv1.Job
		want bool
	}{
		{&starlingv1.Job{Type: "batch", Status: suspended, Counts: &starlingv1.Counts{Desired: 3, Waiting: 2, Succeeded: 1}},
			true},
		{&starlingv1.Job{Type: "stateless", Status: suspended, Counts: &starlingv1.Counts{Desired: 2, Waiting: 2},
			Update: &starlingv1.Update{From: 1, State: "ROLLING_FORWARD"}}, true},
		{&starlingv1.Job{Type: "batch", Status: suspended, Counts: &starlingv1.Counts{Desired: 2, Waiting: 1, Stopping: 1}},
			false},
		{&starlingv1.Job{Type: "batch", Status: "pending", Counts: &starlingv1.Counts{Desired: 2, Waiting: 2}}, false},
	} {
		for name, reached := range map[string]func(*starlingv1.JobStatusResponse) bool{"settled": settled, "scaled": scaled} {
			if got := reached(&starlingv1.JobStatusResponse{Job: c.job}); got != c.want {
				t.Errorf("%s: got %v, want %v for %v", name, got, c.want, c.job)
			}
		}
	}
}

// TestScaledWorkflow waits for the instances of the task that was scaled, and not for what comes after it.
func TestScaledWorkflow(t *testing.T) {
	status := func(starting uint32) *starlingv1.JobStatusResponse {
		return &starlingv1.JobStatusResponse{
			Job: &starlingv1.Job{Type: "batch", Status: "running",
				Counts: &starlingv1.Counts{Desired: 5, Running: 4 - starting, Assigned: starting, Waiting: 1},
				Update: &starlingv1.Update{From: 1, To: 2, State: "ROLLING_FORWARD"}},
			Tasks: []*starlingv1.Task{
				{Name: "map", State: "running", Counts: &starlingv1.Counts{Desired: 4, Running: 4 - starting, Assigned: starting}},
				{Name: "reduce", State: "held", HeldBy: []string{"map"}, Counts: &starlingv1.Counts{Desired: 1, Waiting: 1}},
			},
		}
	}
	if scaled(status(1)) || !scaled(status(0)) {
		t.Errorf("got %v while an instance starts, %v when all run, want false and true", scaled(status(1)),
			scaled(status(0)))
	}
}

// TestFindingsOfNoInstance tells a finding that is about a task and about none of its instances.
func TestFindingsOfNoInstance(t *testing.T) {
	text := findings(&starlingv1.WhyResponse{Job: &starlingv1.Job{Name: "web"}, Findings: []*starlingv1.Finding{
		{Task: "m", Reason: "all instances have succeeded"}, {Task: "m", Instances: 2, Slot: 3, Reason: "they wait"},
	}}, time.Now())
	for _, want := range []string{"\nm: all instances", "\nm, 2 instances, [3] first: they wait\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
}

// TestFindingUntilTomorrow tells the date of a time that is not today.
func TestFindingUntilTomorrow(t *testing.T) {
	now := time.Date(2026, 11, 24, 23, 59, 0, 0, time.Local)
	text := findings(&starlingv1.WhyResponse{Job: &starlingv1.Job{Name: "web"}, Findings: []*starlingv1.Finding{
		{Since: timestamppb.New(now), Until: timestamppb.New(now.Add(time.Minute))},
	}}, now)
	if want := ", until 2026-11-25 00:00:00\n"; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q in it", text, want)
	}
}
