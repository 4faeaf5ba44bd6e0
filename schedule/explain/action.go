package explain

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain/brief"
	"starling/schedule/explain/wording"
	"starling/terms/lifecycle"
)

// Why says what an action followed from, as in "worker[3] failed with exit code 7 (policy of the task)".
func Why(j *workload.Job, d *facts.PolicyAction) string {
	if d.Before != "" {
		return fmt.Sprintf("job %s, which it comes after, did not succeed", d.Before)
	}
	if d.Event == 0 {
		return fmt.Sprintf("%d instances have succeeded, as many as min_success wants", j.Spec.MinSuccess)
	}
	task := j.Tasks[d.Task].Name
	slot, end := fmt.Sprintf("%s[%d]", task, d.Index), ending(facts.Slot{Ended: d.Ended, ExitCode: d.ExitCode})
	what := map[lifecycle.Event]string{
		lifecycle.InstanceFailed:  slot + " failed: " + end,
		lifecycle.InstanceEvicted: slot + " was evicted: " + d.Ended.String(),
		lifecycle.TaskCompleted:   fmt.Sprintf("all instances of %s have succeeded", task),
		lifecycle.TaskFailed:      slot + " has failed for good: " + end,
	}[d.Event]
	switch {
	case d.Event == lifecycle.InstanceFailed && d.Ended == facts.ByItself:
		what = fmt.Sprintf("%s failed with exit code %d", slot, d.ExitCode)
	case d.Event == lifecycle.InstanceEvicted && d.Ended == facts.OnRequest:
		what = slot + " was evicted: its node was drained"
	}
	if d.OfJob {
		return what + " (policy of the job)"
	}
	return what + " (policy of the task)"
}

// PolicyAction says what followed by a policy and why, as in "task worker is restarted: worker[3] failed with exit
// code 7 (policy of the task)".
func PolicyAction(j *workload.Job, d *facts.PolicyAction) string {
	if d.Before != "" {
		return "the job is stopped: " + Why(j, d)
	}
	task := j.Tasks[d.Task].Name
	done := map[lifecycle.Action]string{
		lifecycle.RestartInstance: "the job has failed, for the instance is out of restarts",
		lifecycle.RestartTask:     fmt.Sprintf("task %s is restarted", task),
		lifecycle.RestartJob:      "all of the job is restarted",
		lifecycle.Abort:           "the job is suspended",
		lifecycle.Terminate:       "the job has failed",
		lifecycle.Complete:        "the job has succeeded",
	}[d.Action]
	switch {
	case d.Spent && d.Action == lifecycle.RestartTask:
		done = fmt.Sprintf("the job has failed, for task %s %s", task, spent(j.Tasks[d.Task].Restarts))
	case d.Spent && d.Action == lifecycle.RestartJob:
		done = "the job has failed, for it " + spent(j.PolicyState.Restarts)
	}
	return done + ": " + Why(j, d)
}

// spent says that no restart is left after so many.
func spent(restarts uint32) string {
	switch restarts {
	case 0:
		return "may not be restarted"
	case 1:
		return "was restarted once already"
	}
	return fmt.Sprintf("was restarted %d times already", restarts)
}

// End says as what a job has ended, and because of which other job if so: "stopped: job load, which it comes after, did
// not succeed".
func End(j *workload.Job) string {
	if j.PolicyState.Last.Before != "" {
		return j.Status().String() + ": " + Why(j, &j.PolicyState.Last)
	}
	return j.Status().String()
}

// stopped explains a job that was stopped, by its user, by a policy or by another job.
func (r *Reader) stopped(s *cluster.State, j *workload.Job) Finding {
	f := Finding{Reason: "the job was stopped on request, and all of it has ended", Since: j.FinishedAt}
	d := &j.PolicyState.Last
	if j.PolicyState.Outcome != facts.NoOutcome || d.Before != "" {
		f.Reason = PolicyAction(j, d)
	}
	if d.Before != "" {
		f.Details = []string{
			r.standing(s, d.Before),
			fmt.Sprintf("would help: submit the job again, when job %s has run again and succeeded", d.Before),
		}
	}
	return f
}

// suspended explains what waits of a job that is suspended.
func (e *explainer) suspended(first uint32) Finding {
	f := Finding{Task: e.task.Name, Instances: e.task.Pending(), Slot: first, Reason: "the job is suspended"}
	if d := &e.job.PolicyState.Last; d.Action == lifecycle.Abort {
		f.Reason, f.Since = "the job is suspended: "+Why(e.job, d), d.At
	}
	f.Details = []string{fmt.Sprintf("would help: starling job resume %s", e.job.Name())}
	return f
}

// restarting explains what waits of a task that is restarted.
func (e *explainer) restarting(first uint32) Finding {
	d := &e.job.PolicyState.Last
	f := Finding{Task: e.task.Name, Instances: e.task.Pending(), Slot: first, Since: d.At,
		Reason: "begins anew when all that is to end has ended: " + PolicyAction(e.job, d)}
	for _, t := range e.job.Tasks {
		if live := t.Live(); t.Restarting && live > 0 {
			f.Details = append(f.Details, fmt.Sprintf("%s of %s not ended yet",
				wording.Plural(int(live), "instance", "instances"), t.Name))
		}
	}
	return f
}

// byPolicy parts the slots of which a policy is to decide from the others.
func byPolicy(slots []held) (decided, others []held) {
	for _, h := range slots {
		if h.slot.ByPolicy() {
			decided = append(decided, h)
		} else {
			others = append(others, h)
		}
	}
	return decided, others
}

// decided explains instances that ended and that are not tried again before a policy is followed.
func (e *explainer) decided(slots []held) Finding {
	f := Finding{Reason: "ended, and what a policy says follows later", Since: earliest(slots),
		Until: slots[0].slot.Deadline}
	for _, h := range slots {
		f.Until = min(f.Until, h.slot.Deadline)
	}
	f.Details = wording.Lines(slots, "instances", func(h held) string {
		return fmt.Sprintf("%s was on %s: %s; a policy is followed at %s", e.name(h.index), e.s.Node(h.slot.Node).Name,
			e.ending(h), wording.Clock(h.slot.Deadline))
	})
	return f
}

// completed explains a task that is complete, of which a policy is to be followed.
func (e *explainer) completed() (f Finding, follows bool) {
	text := brief.Follows(e.job, e.number)
	return Finding{Task: e.task.Name,
		Reason: "all instances have succeeded, and what a policy says follows later: " + text,
		Until:  e.task.Completion.Due}, text != ""
}
