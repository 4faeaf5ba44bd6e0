package peer

import (
	"slices"
	"testing"

	"starling/replica/reaction"
	"starling/terms"
)

// TestTaskOfTellsWho wants the environment to tell a task its names, whatever pool its job is in.
func TestTaskOfTellsWho(t *testing.T) {
	p := &Peer{config: Config{Node: "a"}}
	for _, c := range []struct {
		job  terms.JobName
		want []string
	}{
		{"web", []string{"STARLING_JOB=web", "STARLING_POOL=default", "STARLING_ALLOCATION=web.main[2]#7"}},
		{"analytics/etl/nightly", []string{
			"STARLING_JOB=analytics/etl/nightly", "STARLING_POOL=analytics/etl",
			"STARLING_ALLOCATION=analytics/etl/nightly.main[2]#7",
		}},
	} {
		slot := terms.SlotName{Job: c.job, Task: "main", Index: 2}
		task := p.taskOf(reaction.Order{ID: terms.AllocationID{Slot: slot, Order: 7},
			Spec: &terms.Task{Command: []string{"work"}}})
		for _, variable := range append(c.want, "STARLING_TASK=main", "STARLING_INDEX=2") {
			if !slices.Contains(task.Env, variable) {
				t.Errorf("%s: got %q, want %s in it", c.job, task.Env, variable)
			}
		}
	}
}
