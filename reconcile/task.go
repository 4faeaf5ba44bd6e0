package reconcile

import "starling/cluster"

// Millis is a span of time in milliseconds.
type Millis int64

// Task is what is wanted of one task, and the rules by which it gets there.
type Task struct {
	Now      cluster.Time
	Instance cluster.JobID
	Version  uint32
	// Count is the number of slots.
	Count  uint32
	Wanted Wanted
	// Batch tells that work which is done is not run again.
	Batch bool
	Rules Rules
	// Rolling says how an update advances.
	Rolling Rolling
	// KillMillis is the longest time that an instance gets to end.
	KillMillis Millis
	// Update is the latest update of the job; its ID is 0 if there is none.
	Update Update
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

// Rules say what follows when an instance fails or its node is out of reach.
type Rules struct {
	Retry      RetryPolicy
	Disconnect DisconnectPolicy
}

// RetryPolicy says when a failed instance is placed again. The zero policy says never.
type RetryPolicy struct {
	// Attempts are allowed within Interval, unless they are Unlimited.
	Attempts  uint32
	Unlimited bool
	Interval  Millis
	// Delay comes before the first attempt and grows by Growth up to DelayMax; no DelayMax means no bound.
	Delay, DelayMax Millis
	Growth          Growth
}

// Growth is how delays grow from attempt to attempt.
type Growth uint8

// The growths.
const (
	Constant Growth = iota
	Exponential
	Fibonacci
)

// DisconnectPolicy says what becomes of an instance whose node is out of reach.
type DisconnectPolicy struct {
	// LostAfter is how long it may be out of reach before it counts as lost; 0 means at once.
	LostAfter Millis
	// StopAfter is when it ends itself, so that no other may be started before; 0 means never.
	StopAfter Millis
	// KeepOnly says that no other takes its place as long as it is not lost.
	KeepOnly bool
	Survivor Survivor
}

// Survivor says which of two instances is kept when the first returns and another has taken its place.
type Survivor uint8

// The values of Survivor.
const (
	BestScore Survivor = iota
	KeepOriginal
	KeepReplacement
	LongestRunning
)

// Rolling says how an update advances through the slots.
type Rolling struct {
	// ParallelMax bounds the instances that are new and not judged yet; 0 replaces all at once and keeps no record.
	ParallelMax uint32
	// Canaries are placed beside what runs, and promoted, before the rest follows. There are none without a record.
	Canaries uint32
}

// closed tells whether no slot at all is wanted.
func (t *Task) closed() bool { return t.Wanted != Running || t.Count == 0 }

// rules returns the rules of the candidate's own version.
func (t *Task) rules(c *Candidate) *Rules {
	if c.Own != nil {
		return c.Own
	}
	return &t.Rules
}

// older tells whether the candidate was made for another version or instance of the job.
func (t *Task) older(c *Candidate) bool { return c.Version != t.Version || c.Instance != t.Instance }
