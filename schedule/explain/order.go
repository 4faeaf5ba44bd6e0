package explain

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain/wording"
	"starling/terms"
)

// waitsForOthers explains instances of a task that waits for those it comes after.
func (e *explainer) waitsForOthers(first uint32) Finding {
	f := Finding{Task: e.task.Name, Instances: e.task.Pending(), Slot: first}
	if e.job.Version == 1 {
		f.Since = e.job.SubmittedAt
	}
	var open []string
	for _, before := range e.job.After(e.number) {
		if !e.job.Complete(before) {
			open = append(open, string(e.job.Tasks[before].Name))
			f.Details = append(f.Details, e.progress(before))
		}
	}
	f.Reason = "comes after " + strings.Join(open, ", ") + ": it begins when all instances of that have succeeded"
	if len(open) > 1 {
		f.Reason = "comes after " + strings.Join(open, ", ") + ": it begins when all instances of those have succeeded"
	}
	return f
}

// awaits explains a job that waits for others.
func (e *explainer) awaits(first uint32) Finding {
	f := Finding{Task: e.task.Name, Instances: e.task.Pending(), Slot: first, Since: e.job.SubmittedAt,
		Reason: "the job comes after others: it begins when all of them have succeeded"}
	for _, name := range e.job.Awaits {
		f.Details = append(f.Details, e.standing(e.s, name))
	}
	return f
}

// standing says how a job stands that another comes after.
func (r *Reader) standing(s *cluster.State, name terms.JobName) string {
	j := s.JobOf(name)
	switch {
	case !r.seen(name):
		return fmt.Sprintf("job %s is of a pool of which you may not see the jobs", name)
	case j == nil:
		return fmt.Sprintf("job %s is gone", name)
	}
	switch status := j.Status(); status {
	case workload.StatusFailed, workload.StatusSucceeded:
		return fmt.Sprintf("job %s has %s", name, status)
	case workload.StatusStopped:
		return fmt.Sprintf("job %s was stopped", name)
	default:
		return fmt.Sprintf("job %s is %s", name, status)
	}
}

// progress tells how far a task is.
func (e *explainer) progress(task int) string {
	t := e.job.Tasks[task]
	line := fmt.Sprintf("%s: %d of %s succeeded", t.Name, t.Counts[facts.Succeeded],
		wording.Plural(int(t.Desired), "instance", "instances"))
	for _, part := range []struct {
		count uint32
		words string
	}{
		{t.Live(), "running"}, {t.Pending(), "waiting"}, {t.Counts[facts.Failed], "failed"},
	} {
		if part.count > 0 {
			line += fmt.Sprintf(", %d %s", part.count, part.words)
		}
	}
	return line
}

// unreachable explains a task of which nothing will run.
func (e *explainer) unreachable() (f Finding, unreachable bool) {
	all := e.job.Unreachable()
	if e.spec == nil || e.job.Stop || e.task.Desired > 0 || !slices.Contains(all, e.number) {
		return f, false
	}
	var causes []string
	for _, before := range e.job.After(e.number) {
		switch {
		case slices.Contains(all, before):
			causes = append(causes, string(e.job.Tasks[before].Name)+" will not run either")
		case !e.job.Complete(before):
			causes = append(causes, string(e.job.Tasks[before].Name)+" has failed")
		}
	}
	return Finding{
		Task: e.task.Name, Instances: e.spec.Instances,
		Reason: "will not run: it comes after others, and " + strings.Join(causes, ", "),
		Details: []string{fmt.Sprintf(
			"would help: read starling why %s of what has failed, correct it, and submit the job again", e.job.Name())},
	}, true
}
