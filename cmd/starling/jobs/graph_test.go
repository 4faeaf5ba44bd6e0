package jobs

import (
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
)

// diamond is a job in the middle of its way: two tasks between the first and the last, of which nothing runs yet.
func diamond() *starlingv1.JobStatusResponse {
	return &starlingv1.JobStatusResponse{
		Job: &starlingv1.Job{Name: "words", Type: "batch", Status: "running", Counts: &starlingv1.Counts{Desired: 17, Succeeded: 6, Running: 2, Waiting: 9}},
		Spec: &starlingv1.JobSpec{Tasks: []*starlingv1.TaskSpec{
			{Name: "split", Instances: 1}, {Name: "merge", Instances: 1, After: []string{"split", "index", "count"}},
			{Name: "count", Instances: 10, After: []string{"split"}}, {Name: "index", Instances: 4, After: []string{"count"}}, {Name: "lint", Instances: 1},
		}},
		Tasks: []*starlingv1.Task{
			{Name: "split", State: "complete", Counts: &starlingv1.Counts{Desired: 1, Succeeded: 1}},
			{Name: "merge", State: "held", HeldBy: []string{"index", "count"}, Counts: &starlingv1.Counts{Desired: 1, Waiting: 1}},
			{Name: "count", State: "running", Counts: &starlingv1.Counts{Desired: 10, Succeeded: 5, Running: 2, Failed: 0, Waiting: 3}},
			{Name: "index", State: "held", HeldBy: []string{"count"}, Counts: &starlingv1.Counts{Desired: 4, Waiting: 4}},
			{Name: "lint", State: "failed", Counts: &starlingv1.Counts{Desired: 1, Failed: 1}},
		},
	}
}

func TestGraph(t *testing.T) {
	want := `words           running
split           complete                  ████████████████████ 1 of 1
└─ count        running                   ██████████·········· 5 of 10, 2 running
   └─ index     waiting for count         ···················· 0 of 4
      └─ merge  waiting for index, count  ···················· 0 of 1              also after split, count
lint            failed                    ···················· 0 of 1, 1 failed
`
	var got strings.Builder
	if err := graph(diamond()).Write(&got); err != nil || got.String() != want {
		t.Errorf("got\n%s%v, want\n%s", got.String(), err, want)
	}
}

// TestTallyOfWorkflow keeps what waits for other tasks apart from what waits for room.
func TestTallyOfWorkflow(t *testing.T) {
	if got, want := tallyOf(diamond()), "2 running, 4 waiting, 6 succeeded, 5 to come after others"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
