package explain

import (
	"starling/cluster"
	"starling/schedule/explain/wording"
	"starling/terms"
)

// Slot says in a few words what an instance waits for before it is a healthy one of the newest version; "" if for
// nothing that would come by itself or by a user's steering of the update.
func Slot(j *cluster.Job, task int, r cluster.SlotRef, slot cluster.Slot) string {
	spec := j.TaskSpecOf(task, slot.Version)
	switch slot.Phase {
	case cluster.Waiting:
		return waits(j, task, slot)
	case cluster.Postponed:
		if slot.ByPolicy() {
			return "what a policy says, at " + wording.Clock(slot.Deadline)
		}
		return "another machine, at " + wording.Clock(slot.Deadline)
	case cluster.Assigned:
		return "its start"
	case cluster.Delayed:
		return "its restart, at " + wording.Clock(slot.Deadline)
	case cluster.Stopping:
		return "its end: " + slot.Cause.String()
	case cluster.Away:
		return "its machine, until " + wording.Clock(slot.Deadline)
	case cluster.Running:
		return running(j, spec, r, slot)
	}
	return ""
}

// waits says what an instance without a node waits for.
func waits(j *cluster.Job, task int, slot cluster.Slot) string {
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
func running(j *cluster.Job, spec *terms.Task, r cluster.SlotRef, slot cluster.Slot) string {
	u := &j.Update
	switch {
	case slot.Health == cluster.Untried && spec != nil && len(spec.Checks) > 0:
		return "its checks"
	case slot.Health == cluster.Ready && slot.Deadline != 0:
		return "its health, at " + wording.Clock(slot.Deadline)
	case slot.Version == j.Version && r.Seat != cluster.CanarySeat || u.State.Final():
		return ""
	case u.State == cluster.Paused:
		return "starling job update resume"
	case !u.Promoted && r.Seat == cluster.CanarySeat:
		return promotion(j)
	case !u.Promoted:
		return "the canaries"
	}
	return "its turn"
}

// promotion says what a healthy canary waits for.
func promotion(j *cluster.Job) string {
	if j.Spec.Update.AutoPromote {
		return "the other canaries"
	}
	return "starling job update promote"
}
