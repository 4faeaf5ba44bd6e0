package reconcile

import "starling/terms"

// Task is what is wanted of one task, and the rules by which it gets there.
type Task struct {
	Now      terms.Time
	Instance terms.JobID
	Version  uint32
	// Count is the number of slots; of a daemon, of slots per node.
	Count  uint32
	Wanted Wanted
	// Batch tells that work which is done is not run again.
	Batch bool
	// Spec has the rules for what failed or is out of reach; of a task that is removed it is the last one.
	Spec *terms.Task
	// Policy says how an update advances. One that has neither batches nor canaries is not recorded.
	Policy *terms.UpdatePolicy
	// Update is the latest update of the job; its ID is 0 if there is none.
	Update Update
	// Room tells whether there is room for an instance of the present version in the stead of a slot's holder; nil if there
	// always is. It is asked only if the holder would be replaced otherwise, in the order of the slots.
	Room func(index uint32) bool
}

// Wanted tells whether a task is to run at all.
type Wanted uint8

// The values of Wanted.
const (
	// Running tasks have Count slots.
	Running Wanted = iota
	// Removed tasks stand in the job no more.
	Removed
	// Stopped tasks belong to a job that was stopped or forgotten.
	Stopped
)

// closed tells whether no slot at all is wanted.
func (t *Task) closed() bool { return t.Wanted != Running || t.Count == 0 }

// specOf returns the spec of the candidate's own version.
func (t *Task) specOf(c *Candidate) *terms.Task {
	if c.Own != nil {
		return c.Own
	}
	return t.Spec
}

// recorded tells whether updates of the task have a record.
func (t *Task) recorded() bool { return t.Policy.BatchSize > 0 || t.Policy.Canaries > 0 }

// older tells whether the candidate was made for an earlier version or instance of the job.
func (t *Task) older(c *Candidate) bool { return c.Version < t.Version || c.Instance < t.Instance }
