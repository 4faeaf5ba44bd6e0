// Package brief says in a few words what an instance or a task waits for, as tables show it.
package brief

import (
	"fmt"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/explain/wording"
	"starling/terms"
	"starling/terms/lifecycle"
)

// Slot says in a few words what an instance waits for before it is a healthy one of the newest version; "" if for
// nothing that would come by itself or by a user's steering of the update.
func Slot(j *workload.Job, task int, r facts.SlotRef, slot facts.Slot) string {
	spec := j.TaskSpecOf(task, slot.Version)
	switch slot.Phase {
	case facts.Waiting:
		return waits(j, task, slot)
	case facts.Rescheduling:
		if slot.ByPolicy() {
			return "what a policy says, at " + wording.Clock(slot.Deadline)
		}
		return "another machine, at " + wording.Clock(slot.Deadline)
	case facts.Assigned:
		return "its start"
	case facts.BackingOff:
		return "its restart, at " + wording.Clock(slot.Deadline)
	case facts.Stopping:
		return "its end: " + slot.Cause.String()
	case facts.Unknown:
		return "its machine, until " + wording.Clock(slot.Deadline)
	case facts.Running:
		return running(j, spec, r, slot)
	}
	return ""
}

// waits says what an instance without a node waits for.
func waits(j *workload.Job, task int, slot facts.Slot) string {
	switch {
	case j.Suspended:
		return "starling job resume"
	case len(j.Awaits) > 0:
		return "other jobs"
	case j.Tasks[task].Restarting:
		return "the end of what is restarted"
	case j.Held(task):
		return "other tasks"
	case slot.ByPolicy():
		return "a machine, or what a policy says at " + wording.Clock(slot.Deadline)
	}
	return "a machine"
}

// running says what an instance that runs waits for.
func running(j *workload.Job, spec *terms.Task, r facts.SlotRef, slot facts.Slot) string {
	u := &j.Update
	switch {
	case slot.Health == facts.Starting && spec != nil && len(spec.Checks) > 0:
		return "its checks"
	case slot.Health == facts.Ready && slot.Deadline != 0:
		return "its health, at " + wording.Clock(slot.Deadline)
	case slot.Version == j.Version && r.Seat != facts.CanarySeat || u.State.Final():
		return ""
	case u.State == facts.Paused:
		return "starling job update resume"
	case !u.Promoted && r.Seat == facts.CanarySeat:
		return promotion(j)
	case !u.Promoted:
		return "the canaries"
	}
	return "its turn"
}

// promotion says what a healthy canary waits for.
func promotion(j *workload.Job) string {
	if j.Spec.Update.AutoPromote {
		return "the other canaries"
	}
	return "starling job update promote"
}

// Follows says what a policy does later because a task is complete, as in "restart_job at 2026-03-01T06:00:05Z (policy
// of the job)"; "" if none does.
func Follows(j *workload.Job, task int) string {
	p, ofJob, ok := j.Policy(task, lifecycle.TaskCompleted, 0)
	due := j.Tasks[task].Completion.Due
	switch {
	case due == 0 || !ok:
		return ""
	case ofJob:
		return fmt.Sprintf("%s at %s (policy of the job)", p.Action, wording.Clock(due))
	}
	return fmt.Sprintf("%s at %s (policy of the task)", p.Action, wording.Clock(due))
}
