package workload

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// Status is a job's state in one word.
type Status uint8

// The states of a job.
const (
	// StatusPending: some instances wait, or a policy is to be followed, and none has a node.
	StatusPending Status = iota + 1
	// StatusRunning: at least one instance has a node.
	StatusRunning
	// StatusSuspended: its user, or a policy, wants nothing of it to run for now.
	StatusSuspended
	// StatusStopping: it was told to stop and some instance has not ended.
	StatusStopping
	// StatusSucceeded, StatusFailed and StatusStopped are final. A service fails when each of its instances has failed for
	// good; unlike another job it may still get a new version.
	StatusSucceeded
	StatusFailed
	StatusStopped
	// StatusIdle: it was scaled to none, and none is left.
	StatusIdle
)

// String returns the status as people read it.
func (s Status) String() string {
	return [...]string{"unknown", "pending", "running", "suspended", "stopping", "succeeded", "failed", "stopped",
		"idle"}[s]
}

// Final tells whether the job has ended.
func (s Status) Final() bool { return s >= StatusSucceeded && s <= StatusStopped }

// Status derives the job's state from its slots.
func (j *Job) Status() Status {
	var total [facts.PhaseCount]uint32
	for _, t := range j.Tasks {
		for phase := range t.Counts {
			total[phase] += t.Counts[phase] + t.Secondary[phase]
		}
	}
	switch {
	case j.Finished != 0 && j.PolicyState.Outcome == facts.Completed:
		return StatusSucceeded
	case j.Finished != 0 && j.PolicyState.Outcome == facts.Terminated:
		return StatusFailed
	case j.Finished != 0 && j.Stop:
		return StatusStopped
	case j.Finished != 0 && total[facts.Failed] > 0 && !j.Enough():
		return StatusFailed
	case j.Finished != 0:
		return StatusSucceeded
	case j.Stop:
		return StatusStopping
	case j.Suspended:
		return StatusSuspended
	case total[facts.Assigned]+total[facts.Running]+total[facts.BackingOff]+total[facts.Stopping]+total[facts.Unknown] > 0:
		return StatusRunning
	case total[facts.Failed] > 0 && !j.Busy():
		return StatusFailed
	case j.Spec.Type != terms.Daemon && j.None():
		return StatusIdle
	}
	return StatusPending
}

// None tells whether the job wants no instances: it was scaled to none, and may have some again.
func (j *Job) None() bool {
	return !slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return t.Instances > 0 })
}

// Busy tells whether anything of a job waits, holds room or is to follow.
func (j *Job) Busy() bool {
	return slices.ContainsFunc(j.Tasks,
		func(t *Task) bool { return t.Pending() > 0 || t.Live() > 0 || t.Completion.Due != 0 })
}

// Enough tells whether as many instances have succeeded as must for the job to have succeeded.
func (j *Job) Enough() bool {
	succeeded := uint32(0)
	for _, t := range j.Tasks {
		succeeded += t.Counts[facts.Succeeded]
	}
	return j.Spec.MinSuccess > 0 && succeeded >= j.Spec.MinSuccess
}
