package sizing

import (
	"fmt"
	"strings"
	"testing"

	"starling/jobspec"
	"starling/terms"
)

// TestScaled changes numbers of a job of a leader and workers, written as instances/minimum, and the minimum of the
// job.
func TestScaled(t *testing.T) {
	cases := []struct {
		name, before, sizes, want string
	}{
		{"no minimum", "1/0 2/0 0", "worker=8", "1/0 8/0 0"},
		{"all are the gang", "1/1 2/2 3", "worker=8", "1/1 8/8 9"},
		{"shrinks with its minima", "1/1 8/8 9", "worker=3", "1/1 3/3 4"},
		{"elastic beyond the minimum", "1/1 4/2 3", "worker=8", "1/1 8/2 3"},
		{"the sum of the minima follows", "1/1 2/2 0", "worker=5", "1/1 5/5 0"},
		{"the job's minimum is the sum of those of the tasks", "1/1 4/4 5", "leader=2,worker=6", "2/2 6/6 8"},
		{"below the minimum", "1/1 4/2 3", "worker=1",
			"tasks.worker.min_available must be at most the number of instances that may run, 1, is 2"},
		{"below the minimum of the job", "1/0 4/0 4", "worker=2",
			"min_available must be at most the number of instances that may run, 3, is 4"},
		{"to none", "1/1 4/4 5", "worker=0", "1/1 0/0 1"},
		{"from none, without a minimum", "1/0 0/0 0", "worker=3", "1/0 3/0 0"},
		{"all of the job from none", "0/0 0/0 0", "worker=3,leader=1", "1/0 3/0 0"},
		{"too many", "1/0 4/0 0", "worker=2000000", "tasks.worker.instances must be 0 to 1000000, is 2000000"},
		{"no such task", "1/0 4/0 0", "nobody=1", "job train has no task nobody: there are leader, worker"},
		{"which task", "1/0 4/0 0", "=1",
			"job train has several tasks: write which, as in train/leader=3: there are leader, worker"},
		{"twice", "1/0 4/0 0", "worker=1,worker=2", "task worker of job train is given two numbers"},
	}
	for _, c := range cases {
		spec := jobspec.Command("train", []string{"true"})
		spec.Type = terms.Stateless
		spec.Tasks = append(spec.Tasks, spec.Tasks[0])
		leader, worker := &spec.Tasks[0], &spec.Tasks[1]
		leader.Name, worker.Name = "leader", "worker"
		if _, err := fmt.Sscanf(c.before, "%d/%d %d/%d %d", &leader.Instances, &leader.MinAvailable, &worker.Instances,
			&worker.MinAvailable,
			&spec.MinAvailable); err != nil {
			t.Fatal(err)
		}
		var sizes []Size
		for one := range strings.SplitSeq(c.sizes, ",") {
			task, number, _ := strings.Cut(one, "=")
			var count uint32
			if _, err := fmt.Sscan(number, &count); err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, Size{terms.TaskName(task), count})
		}
		before := fmt.Sprint(spec)
		next, err := Scaled(&spec, nil, sizes)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			l, w := next.Tasks[0], next.Tasks[1]
			got = fmt.Sprintf("%d/%d %d/%d %d", l.Instances, l.MinAvailable, w.Instances, w.MinAvailable, next.MinAvailable)
		}
		if !strings.Contains(got, c.want) || err == nil && got != c.want {
			t.Errorf("%s: %s scaled to %s is %q, want %q", c.name, c.before, c.sizes, got, c.want)
		}
		if after := fmt.Sprint(spec); after != before {
			t.Errorf("%s: the job itself has changed to %s", c.name, after)
		}
	}
}

// TestScaledFromNone takes jobs to none and back: what had a minimum has it again, and nothing else does.
func TestScaledFromNone(t *testing.T) {
	for _, c := range []struct{ name, before, want string }{
		{"no minimum", "2/0 0", "5/0 0"},
		{"the task is the gang", "2/2 0", "5/5 0"},
		{"the job is the gang", "2/0 2", "5/0 5"},
		{"both", "2/2 2", "5/5 5"},
	} {
		spec := jobspec.Command("train", []string{"true"})
		spec.Type = terms.Stateless
		if _, err := fmt.Sscanf(c.before, "%d/%d %d", &spec.Tasks[0].Instances, &spec.Tasks[0].MinAvailable,
			&spec.MinAvailable); err != nil {
			t.Fatal(err)
		}
		earlier := []*terms.Job{&spec}
		for _, size := range []uint32{0, 0, 5} {
			next, err := Scaled(earlier[0], earlier[1:], []Size{{Instances: size}})
			if err != nil {
				t.Fatal(err)
			}
			earlier = append([]*terms.Job{next}, earlier...)
		}
		last := earlier[0]
		if got := fmt.Sprintf("%d/%d %d", last.Tasks[0].Instances, last.Tasks[0].MinAvailable,
			last.MinAvailable); got != c.want {
			t.Errorf("%s: %s is %s in the end, want %s", c.name, c.before, got, c.want)
		}
	}
}
