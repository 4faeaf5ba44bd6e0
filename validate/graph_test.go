package validate

import (
	"slices"
	"strings"
	"testing"

	"starling/terms"
	"starling/terms/rules"
)

func TestFollowProblems(t *testing.T) {
	for _, c := range []struct {
		after []terms.JobName
		kind  terms.JobType
		want  []string
	}{
		{[]terms.JobName{"load", "ops/load"}, terms.Stateless, nil},
		{[]terms.JobName{"j"}, terms.Batch, []string{"after[0]: is the job itself"}},
		{[]terms.JobName{"a", "a"}, terms.Batch, []string{"after[1]: is there twice"}},
		{[]terms.JobName{"a"}, terms.Daemon, []string{"after: excludes daemon: daemons belong to their machines"}},
	} {
		spec := terms.Job{Name: "j", Type: c.kind, After: c.after,
			Tasks: []terms.Task{{Name: "t", Instances: 1, Command: []string{"run"}, Placement: terms.Pack}}}
		var got []string
		for _, p := range Job(&spec, rules.Released) {
			if strings.HasPrefix(p.Path, "after") {
				got = append(got, p.Path+": "+p.Reason)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v of type %s: got %q, want %q", c.after, c.kind, got, c.want)
		}
	}
}

// TestGraphProblems writes a task as name:after,after.
func TestGraphProblems(t *testing.T) {
	for _, c := range []struct {
		tasks string
		kind  terms.JobType
		gang  uint32
		want  []string
	}{
		{tasks: "a b:a c:a,b", kind: terms.Batch},
		{tasks: "c:b b:a a", kind: terms.Batch},
		{tasks: "a b:x", kind: terms.Batch, want: []string{`tasks[1].after[0]: there is no task "x" in the job: it has a, b`}},
		{tasks: "a b:a,a", kind: terms.Batch, want: []string{"tasks[1].after[1]: is there twice"}},
		{tasks: "a:a", kind: terms.Batch, want: []string{"tasks[0].after: is in a cycle: a after a"}},
		{tasks: "s a:c,s b:a c:b", kind: terms.Batch,
			want: []string{"tasks[1].after: is in a cycle: a after c after b after a"}},
		{tasks: "a b:a", kind: terms.Stateless, want: []string{"tasks[1].after: needs a batch job: only its tasks come to an end"}},
		{tasks: "a b:a", kind: terms.Batch, gang: 2,
			want: []string{"tasks[1].after: excludes min_available: a gang starts together, and this begins later"}},
	} {
		spec := terms.Job{Name: "j", Type: c.kind, MinAvailable: c.gang}
		for _, text := range strings.Fields(c.tasks) {
			name, after, _ := strings.Cut(text, ":")
			task := terms.Task{Name: terms.TaskName(name), Instances: 1, Command: []string{"run"}, Placement: terms.Pack}
			for _, one := range strings.FieldsFunc(after, func(r rune) bool { return r == ',' }) {
				task.After = append(task.After, terms.TaskName(one))
			}
			spec.Tasks = append(spec.Tasks, task)
		}
		var got []string
		for _, p := range Job(&spec, rules.Released) {
			if strings.Contains(p.Path, "after") {
				got = append(got, p.Path+": "+p.Reason)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.tasks, got, c.want)
		}
	}
}
