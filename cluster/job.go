package cluster

import (
	"slices"

	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/vector"
	"starling/terms"
)

// Job is a job as it stands in the value: its facts, and what follows from them and from those of its tasks. Only the methods of State change
// it.
type Job struct {
	edition *vector.Edition
	facts.Job
	// Spec is the newest version.
	Spec  *terms.Job
	Tasks []*Task
	// wants is the most that it has ever wanted at a time.
	wants Wants
	// gang is how many instances of each task must run together, nil for a job without a gang, gangAny how many of any
	// beyond those, and gangState how that stands as the queue knows it.
	gang      []uint32
	gangAny   uint32
	gangState gang.State
	// graph is the order of the tasks, nil if there is none.
	graph *graph
	// row is what the job's row adds to the digest of the value.
	row uint64
}

// Task is a task as it stands in the value: its facts, its slots, and what follows from them.
type Task struct {
	edition *vector.Edition
	facts.Task
	// Slots are the main seats.
	Slots vector.Of[facts.Slot]
	// Counts are the main seats below Slots.Len per phase, Beside the other seats.
	Counts, Beside [facts.PhaseCount]uint32
	// New and Old are the main seats below Desired by health: those of the newest version, or on their way to it, and
	// those of another. What does not run counts as untried, what succeeded as healthy and new.
	New, Old [facts.HealthCount]uint32
	// Canaries are the canary seats by health, counted in the same way.
	Canaries [facts.HealthCount]uint32
	// returned are the slots below Fresh that wait for any node and the newest version.
	returned *btree.Set[uint32]
	// asked is how many instances ask for room, askedEach what one takes: as the account of the pool has it.
	asked     uint32
	askedEach terms.Amounts
	// turn and specialTurn are where its lanes stand in the queue, zero where nothing waits.
	turn, specialTurn Turn
	// rare is what few tasks have; nil for the others.
	rare *rare
	// complete tells, in a job whose tasks have an order, whether it was so when the tasks after it were looked at last.
	complete bool
	// digest is the sum over the slots, row what the task's own row adds to that of the value.
	digest, row           uint64
	nameHash, failureHash uint64
}

// Name returns the job's name.
func (j *Job) Name() terms.JobName { return j.Spec.Name }

// TaskSpecOf returns what the slot's allocation was ordered with: the task's specification in that version.
func (j *Job) TaskSpecOf(task int, version uint32) *terms.Task {
	spec := j.SpecOf(version)
	if spec == nil {
		return nil
	}
	name := j.Tasks[task].Name
	for i := range spec.Tasks {
		if spec.Tasks[i].Name == name {
			return &spec.Tasks[i]
		}
	}
	return nil
}

// TaskIndex returns the number of the named task, or -1.
func (j *Job) TaskIndex(name terms.TaskName) int {
	for i := range j.Tasks {
		if j.Tasks[i].Name == name {
			return i
		}
	}
	return -1
}

// Waits returns how many slots of the task wait for any node and the newest version.
func (t *Task) Waits() uint32 { return t.Desired - min(t.Fresh, t.Desired) + uint32(t.returned.Len()) }

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
	return [...]string{"unknown", "pending", "running", "suspended", "stopping", "succeeded", "failed", "stopped", "idle"}[s]
}

// Final tells whether the job has ended.
func (s Status) Final() bool { return s >= StatusSucceeded && s <= StatusStopped }

// none tells whether the job wants no instances: it was scaled to none, and may have some again.
func (j *Job) none() bool {
	return !slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return t.Instances > 0 })
}

// Status derives the job's state from its slots.
func (j *Job) Status() Status {
	var total [facts.PhaseCount]uint32
	for _, t := range j.Tasks {
		for phase := range t.Counts {
			total[phase] += t.Counts[phase] + t.Beside[phase]
		}
	}
	switch {
	case j.Finished != 0 && j.Fate.Verdict == facts.Completed:
		return StatusSucceeded
	case j.Finished != 0 && j.Fate.Verdict == facts.Terminated:
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
	case total[facts.Assigned]+total[facts.Running]+total[facts.Delayed]+total[facts.Stopping]+total[facts.Away] > 0:
		return StatusRunning
	case total[facts.Failed] > 0 && !j.Busy():
		return StatusFailed
	case j.Spec.Type != terms.Daemon && j.none():
		return StatusIdle
	}
	return StatusPending
}
