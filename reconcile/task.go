package reconcile

import "starling/terms"

// Task is what is wanted of one task, and the rules by which it gets there.
type Task struct {
	Now     terms.Time
	Version uint32
	// Soon is how much before its time a retry is due already.
	Soon terms.Time
	// Count is the number of slots, 0 if the job was stopped or has the task no more.
	Count uint32
	// Batch tells that work which is done is not run again, Daemon that the slots belong to nodes: a new one is no part of
	// an update.
	Batch, Daemon bool
	// Spec has the rules for what failed or is out of reach; of a task that is removed it is the last one.
	Spec *terms.Task
	// Policy says how an update advances.
	Policy *terms.UpdatePolicy
	// Update is the one to the present version; its ID is 0 if there is none that matters.
	Update Update
	// Room tells whether there is room for an instance of the present version in the stead of a slot's holder; nil if
	// there always is. It is asked only if the holder would be replaced otherwise, in the order of the slots.
	Room func(index uint32) bool
}

// specOf returns the spec of the candidate's own version. Of what waits, for which no version is, there is none if the
// newest lacks its task.
func (t *Task) specOf(c *Candidate) *terms.Task {
	switch {
	case c.Own != nil:
		return c.Own
	case t.Spec != nil:
		return t.Spec
	}
	return &terms.Task{}
}

// older tells whether the candidate was made for an earlier version of the job.
func (t *Task) older(c *Candidate) bool { return c.Version < t.Version }

// Update is the record of a job's move to its present version, as far as one task is concerned.
type Update struct {
	// ID names the update; 0 stands for none.
	ID    terms.Index
	State UpdateState
	// Total is the number of instances that are to be healthy in the end, Canaries those to be tried first.
	Total, Canaries uint32
	// Promoted tells that the canaries were found good.
	Promoted bool
	// Trying tells that canaries of some task of the job are tried: all wait until they are promoted.
	Trying bool
}

// UpdateState is how far an update is.
type UpdateState uint8

// The states of an update.
const (
	UpdateRunning UpdateState = iota
	UpdatePaused
	UpdateFailed
)

// paused and failed tell whether the update is.
func (t *Task) paused() bool { return t.Update.ID != 0 && t.Update.State == UpdatePaused }
func (t *Task) failed() bool { return t.Update.ID != 0 && t.Update.State == UpdateFailed }

// placedNow tells whether the update placed the candidate.
func (t *Task) placedNow(c *Candidate) bool { return c.Update != 0 && c.Update == t.Update.ID }

// seatOf returns the seat that the candidate is in, and whether that seat is wanted: a canary has a seat of its own
// until its update promotes it, and none if that update is over.
func (t *Task) seatOf(c *Candidate) (seat Seat, wanted bool) {
	own := c.CanaryOf == t.Update.ID
	if c.CanaryOf == 0 || own && t.Update.Promoted {
		return MainSeat, true
	}
	return CanarySeat, own && t.Update.State != UpdateFailed
}
