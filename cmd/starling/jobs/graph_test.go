package jobs

import (
	"fmt"
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
)

// diamond is a job in the middle of its way: two tasks between the first and the last, of which nothing runs yet.
func diamond() *starlingv1.JobStatusResponse {
	return &starlingv1.JobStatusResponse{
		Job: &starlingv1.Job{Name: "words", Type: "batch", Status: "running",
			Counts: &starlingv1.Counts{Desired: 17, Succeeded: 6, Running: 2, Waiting: 9}},
		Spec: &starlingv1.JobSpec{Tasks: []*starlingv1.TaskSpec{
			{Name: "split", Instances: 1}, {Name: "merge", Instances: 1, After: []string{"split", "index", "count"}},
			{Name: "count", Instances: 10, After: []string{"split"}}, {Name: "index", Instances: 4, After: []string{"count"}},
			{Name: "lint", Instances: 1},
		}},
		Tasks: []*starlingv1.Task{
			{Name: "split", State: "complete", Counts: &starlingv1.Counts{Desired: 1, Succeeded: 1}},
			{Name: "merge", State: "held", HeldBy: []string{"index", "count"},
				Counts: &starlingv1.Counts{Desired: 1, Waiting: 1}},
			{Name: "count", State: "running",
				Counts: &starlingv1.Counts{Desired: 10, Succeeded: 5, Running: 2, Failed: 0, Waiting: 3}},
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
	if err := graph(diamond(), 0).Write(&got); err != nil || got.String() != want {
		t.Errorf("got\n%s%v, want\n%s", got.String(), err, want)
	}
}

func TestForemost(t *testing.T) {
	answer := diamond()
	if got, want := foremost(graph(answer, 0)), 2; got != want {
		t.Errorf("got row %d, want %d, that of count", got, want)
	}
	for _, task := range answer.GetTasks() {
		task.State = "complete"
	}
	if got := foremost(graph(answer, 0)); got != 0 {
		t.Errorf("got row %d, want 0: all are complete", got)
	}
}

func TestGraphAfterJobs(t *testing.T) {
	answer := diamond()
	answer.Spec.After = []string{"lab/fetch", "clean"}
	var got strings.Builder
	if err := graph(answer, 0).Write(&got); err != nil ||
		!strings.HasPrefix(got.String(), "words           running                   after lab/fetch, clean\n") {
		t.Errorf("got\n%s%v, want the jobs that come before in the first line", got.String(), err)
	}
}

func TestGraphInFewColumns(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{90, `words           running
split           complete                  ████ 1 of 1
└─ count        running                   ██·· 5 of 10, 2 running
   └─ index     waiting for count         ···· 0 of 4
      └─ merge  waiting for index, count  ···· 0 of 1              also after split, count
lint            failed                    ···· 0 of 1, 1 failed
`},
		{80, `words           running
split           complete                  1 of 1
└─ count        running                   5 of 10, 2 running
   └─ index     waiting for count         0 of 4
      └─ merge  waiting for index, count  0 of 1              also after split, count
lint            failed                    0 of 1, 1 failed
`},
		{30, `words         running
split         complete   1 of 1
└─ count      running    5 of 10, 2 running
   └─ index   waiting …  0 of 4
…   └─ merge  waiting …  0 of 1              also after split, count
lint          failed     0 of 1, 1 failed
`},
	} {
		var got strings.Builder
		if err := graph(diamond(), c.columns).Write(&got); err != nil || got.String() != c.want {
			t.Errorf("%d columns: got\n%s%v, want\n%s", c.columns, got.String(), err, c.want)
		}
	}
}

// TestGraphOfLongRow keeps a workflow of as many tasks as there may be, one after the other, on a screen.
func TestGraphOfLongRow(t *testing.T) {
	row := &starlingv1.JobStatusResponse{Job: &starlingv1.Job{Name: "row", Type: "batch", Status: "running"},
		Spec: &starlingv1.JobSpec{}}
	for i := range 64 {
		spec := &starlingv1.TaskSpec{Name: fmt.Sprintf("t%d", i), Instances: 1}
		if i > 0 {
			spec.After = []string{fmt.Sprintf("t%d", i-1)}
		}
		row.Spec.Tasks = append(row.Spec.Tasks, spec)
		row.Tasks = append(row.Tasks, &starlingv1.Task{Name: spec.GetName(), State: "waiting",
			Counts: &starlingv1.Counts{Desired: 1, Waiting: 1}})
	}
	for _, c := range []struct {
		columns, widthMax int
		last              string
	}{
		{0, 130, "└ t63  waiting  ···················· 0 of 1"}, {80, 80, "└ t63  waiting  0 of 1"},
		{40, 40, "└ t63  waiting  0 of 1"},
	} {
		drawn := graph(row, c.columns)
		var got strings.Builder
		if err := drawn.Write(&got); err != nil || drawn.Width() > c.widthMax ||
			!strings.HasSuffix(got.String(), c.last+"\n") {
			t.Errorf("%d columns: got %d columns that end with\n%s%v, want at most %d, and %q", c.columns, drawn.Width(),
				got.String()[strings.LastIndex(strings.TrimSpace(got.String()), "\n"):], err, c.widthMax, c.last)
		}
	}
}

// TestTallyOfWorkflow keeps what waits for other tasks apart from what waits for room.
func TestTallyOfWorkflow(t *testing.T) {
	if got, want := tallyOf(diamond()), "2 running, 4 waiting, 6 succeeded, 5 blocked by dependencies"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
