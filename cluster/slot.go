package cluster

import "cmp"

// Phase is how far the present allocation of a slot is.
type Phase uint8

// The phases of a slot.
const (
	// Waiting means that no node has been chosen yet.
	Waiting Phase = iota
	// Assigned means that its node was told to run it.
	Assigned
	// Running means that its node reported that it runs.
	Running
	// Delayed means that it failed and will be started again on its node at NotBefore.
	Delayed
	// Stopping means that its node was told to end it; it holds its room until the node reports the end.
	Stopping
	// Succeeded, Failed and Stopped are final: it ended well, it is out of restarts, it was stopped on request.
	Succeeded
	Failed
	Stopped
	PhaseCount
)

// String returns the phase as people read it.
func (p Phase) String() string {
	return [...]string{"waiting", "assigned", "running", "delayed", "stopping", "succeeded", "failed", "stopped"}[p]
}

// Holds tells whether a slot in this phase takes room on its node.
func (p Phase) Holds() bool { return p >= Assigned && p <= Stopping }

// Final tells whether a slot in this phase has ended for good.
func (p Phase) Final() bool { return p >= Succeeded }

// Slot is the place of one instance, with its present allocation. The zero Slot waits and was never placed.
type Slot struct {
	// Order is the index of the entry that ordered the allocation; 0 if there never was one.
	Order Index
	// NotBefore is when a Delayed slot starts again.
	NotBefore Time
	// Since is when the phase began; for Running slots that is the start as the fold learnt it.
	Since Time
	// Node runs the allocation, or ran the last one. It has no meaning while Order is 0.
	Node NodeIndex
	// Version of the job that the allocation was ordered with.
	Version uint32
	// Failures in a row.
	Failures uint32
	// ExitCode of the last end: the program's own, or 128 and the signal's number.
	ExitCode int32
	Phase    Phase
	// Ended tells how the last allocation ended.
	Ended Ending
}

// Ending is how an allocation ended.
type Ending uint8

// The endings.
const (
	// NotEnded means that no allocation of the slot has ended yet.
	NotEnded Ending = iota
	// ByItself: the program exited.
	ByItself
	// BySignal: a signal that Starling did not send for a stop ended it.
	BySignal
	// OutOfMemory: it used more memory than it had asked for.
	OutOfMemory
	// NotStarted: the node could not start it.
	NotStarted
	// NodeLost: its node left the cluster.
	NodeLost
	// OnRequest: it was told to stop.
	OnRequest
	EndingCount
)

// String returns the ending in words.
func (e Ending) String() string {
	return [...]string{"not ended", "exited", "killed by a signal", "out of memory", "could not be started", "its node was lost", "stopped on request"}[e]
}

// SlotRef names a slot by numbers.
type SlotRef struct {
	Job   JobID
	Index uint32
	Task  uint16
}

// Compare orders slots by job, task and number.
func (r SlotRef) Compare(other SlotRef) int {
	return cmp.Or(cmp.Compare(r.Job, other.Job), cmp.Compare(r.Task, other.Task), cmp.Compare(r.Index, other.Index))
}
