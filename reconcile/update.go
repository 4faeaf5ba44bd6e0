package reconcile

import "starling/terms"

// Update is the record of a job's move from one version to another, as far as one task is concerned.
type Update struct {
	// ID names the update; 0 stands for none.
	ID       terms.Index
	Instance terms.JobID
	Version  uint32
	State    UpdateState
	// Joined tells that the task takes part in it; what follows has a meaning only then.
	Joined bool
	// Total is the number of instances that it was to place or to change when it began, Canaries those to be tried
	// first.
	Total, Canaries uint32
	// Promoted tells that the canaries were found good.
	Promoted bool
	// Trying tells that canaries of another task of the job are tried: this one waits with it.
	Trying bool
}

// UpdateState is how far an update is.
type UpdateState uint8

// The states of an update.
const (
	UpdateRunning UpdateState = iota
	UpdatePaused
	UpdateFailed
	UpdateSuccessful
	UpdateCancelled
)

// Standing is what an update is to the job as it is now.
type Standing uint8

// The standings.
const (
	// NoUpdate: there is none.
	NoUpdate Standing = iota
	// CurrentUpdate belongs to the present version.
	CurrentUpdate
	// PastUpdate is over, or belonged to another version.
	PastUpdate
	// SupersededUpdate goes on for a version that is not wanted any more: it is to be cancelled.
	SupersededUpdate
	// AbandonedUpdate goes on for a job that was stopped: it is to be cancelled.
	AbandonedUpdate
)

// Standing returns what the update is to the task's job.
func (t *Task) Standing() Standing {
	u := &t.Update
	switch {
	case u.ID == 0:
		return NoUpdate
	case t.Wanted == Stopped && u.active():
		return AbandonedUpdate
	case t.Wanted == Stopped:
		return PastUpdate
	case (u.Version != t.Version || u.Instance != t.Instance) && u.active():
		return SupersededUpdate
	case u.Version != t.Version || u.Instance != t.Instance || u.State == UpdateSuccessful:
		return PastUpdate
	}
	return CurrentUpdate
}

// active tells whether the update goes on, if only after a pause.
func (u *Update) active() bool { return u.State == UpdateRunning || u.State == UpdatePaused }

// current tells whether there is an update of the present version.
func (t *Task) current() bool { return t.Standing() == CurrentUpdate }

// joined tells whether the task takes part in an update of the present version.
func (t *Task) joined() bool { return t.Update.Joined && t.current() }

// succeeded tells whether the present version was brought in by an update that is over.
func (t *Task) succeeded() bool {
	u := &t.Update
	return u.ID != 0 && u.State == UpdateSuccessful && u.Version == t.Version && u.Instance == t.Instance
}

// paused and failed tell whether the present update is.
func (t *Task) paused() bool { return t.Update.State == UpdatePaused && t.current() }
func (t *Task) failed() bool { return t.Update.State == UpdateFailed && t.current() }

// placedNow tells whether the present update placed the candidate.
func (t *Task) placedNow(c *Candidate) bool {
	return c.Update != 0 && c.Update == t.Update.ID && t.current()
}

// governs tells whether what follows a failure of the candidate is left to the present update.
func (t *Task) governs(c *Candidate) bool { return t.placedNow(c) && t.Update.active() }

// seatOf returns the seat that the candidate is in, and whether that seat is wanted: a canary has a seat of its own
// until its update promotes it, and none if that update is over.
func (t *Task) seatOf(c *Candidate) (seat Seat, wanted bool) {
	own := c.CanaryOf == t.Update.ID
	if c.CanaryOf == 0 || own && t.Update.Promoted {
		return MainSeat, true
	}
	return CanarySeat, own && t.current() && t.Update.State != UpdateFailed
}
