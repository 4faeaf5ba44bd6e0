// Package sizing gives jobs other numbers of instances.
package sizing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// Size is how many instances a task is to have. Without a task it is that of a job's only one.
type Size struct {
	Task      terms.TaskName
	Instances uint32
}

// Scaled returns a job with other numbers of instances. A minimum that was as large as a number, or as a sum of them,
// stays so; one that does not fit any more is an error that names it. All else is as it was. Of what has no instances
// now, an earlier version tells which minimum it had: the newest come first.
func Scaled(spec *terms.Job, earlier []*terms.Job, sizes []Size) (*terms.Job, error) {
	if spec.Type == terms.Daemon {
		return nil, fmt.Errorf("job %s cannot be scaled: a daemon has one instance on every machine that can run it",
			spec.Name)
	}
	next := *spec
	next.Tasks = slices.Clone(spec.Tasks)
	for i, size := range sizes {
		t, err := sized(&next, size.Task)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(sizes[:i],
			func(s Size) bool { return s.Task == size.Task || s.Task == "" || size.Task == "" }) {
			return nil, fmt.Errorf("task %s of job %s is given two numbers", t.Name, spec.Name)
		}
		if last := lastSized(t, earlier); last.Instances > 0 && last.MinAvailable == last.Instances {
			t.MinAvailable = size.Instances
		}
		t.Instances = size.Instances
	}
	if instances, _ := totals(spec); instances > 0 && spec.MinSuccess == instances {
		next.MinSuccess, _ = totals(&next)
	}
	last := lastWithInstances(spec, earlier)
	switch instances, minima := totals(last); last.MinAvailable {
	case 0:
	case instances:
		next.MinAvailable, _ = totals(&next)
	case minima:
		_, next.MinAvailable = totals(&next)
	}
	var wrong []error
	for _, p := range validate.Job(&next, rules.Released) {
		wrong = append(wrong, fmt.Errorf("job %s: %s %s", spec.Name, pathByName(&next, p.Path), p.Reason))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%w\nhint: what does not follow the numbers by itself is changed in the job file",
			errors.Join(wrong...))
	}
	return &next, nil
}

// lastSized returns the task as it was when it last had instances, itself if that is not known.
func lastSized(t *terms.Task, earlier []*terms.Job) *terms.Task {
	for i := 0; t.Instances == 0 && i < len(earlier); i++ {
		for k := range earlier[i].Tasks {
			if before := &earlier[i].Tasks[k]; before.Name == t.Name && before.Instances > 0 {
				return before
			}
		}
	}
	return t
}

// lastWithInstances returns the job as it was when it last had instances, itself if that is not known.
func lastWithInstances(spec *terms.Job, earlier []*terms.Job) *terms.Job {
	for _, one := range append([]*terms.Job{spec}, earlier...) {
		if instances, _ := totals(one); instances > 0 {
			return one
		}
	}
	return spec
}

// sized returns the task that is to have another number.
func sized(spec *terms.Job, name terms.TaskName) (*terms.Task, error) {
	if name == "" && len(spec.Tasks) == 1 {
		return &spec.Tasks[0], nil
	}
	for i := range spec.Tasks {
		if spec.Tasks[i].Name == name {
			return &spec.Tasks[i], nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("job %s has several tasks: write which, as in %s/%s=3: there are %s", spec.Name, spec.Name,
			spec.Tasks[0].Name, strings.Join(spec.TaskNames(), ", "))
	}
	return nil, fmt.Errorf("job %s has no task %s: there are %s", spec.Name, name, strings.Join(spec.TaskNames(), ", "))
}

// totals sums the instances of a job, and the minima of its tasks.
func totals(spec *terms.Job) (instances, minima uint32) {
	for i := range spec.Tasks {
		instances += spec.Tasks[i].Instances
		minima += spec.Tasks[i].MinAvailable
	}
	return instances, minima
}

// pathByName writes tasks[2].min_available as tasks.worker.min_available: who scales has no file before them.
func pathByName(spec *terms.Job, path string) string {
	for i := range spec.Tasks {
		if rest, ok := strings.CutPrefix(path, fmt.Sprintf("tasks[%d].", i)); ok {
			return "tasks." + string(spec.Tasks[i].Name) + "." + rest
		}
	}
	return path
}
