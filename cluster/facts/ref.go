package facts

import (
	"cmp"

	"starling/terms"
)

// SlotRef names a slot by numbers, and one of its seats.
type SlotRef struct {
	Job   terms.JobID
	Index uint32
	Task  uint16
	Seat  Seat
}

// Compare orders slots by job, task, number and seat.
func (r SlotRef) Compare(other SlotRef) int {
	return cmp.Or(cmp.Compare(r.Job, other.Job), cmp.Compare(r.Task, other.Task), cmp.Compare(r.Index, other.Index),
		cmp.Compare(r.Seat, other.Seat))
}

// OfTask tells whether a deadline that was due is that of a task which is complete.
func (r SlotRef) OfTask() bool { return r.Job != 0 && r.Index == taskDeadline }

// OfUpdate tells whether a deadline that was due is that of a job's update.
func (r SlotRef) OfUpdate() bool { return r.Task == jobDeadline }

// OfNode tells whether a deadline that was due is that of a node, number Index.
func (r SlotRef) OfNode() bool { return r.Job == 0 }

// RefOfTask names a task that is complete among what has deadlines, RefOfUpdate the update of a job, and RefOfNode a
// node.
func RefOfTask(job terms.JobID, task int) SlotRef {
	return SlotRef{Job: job, Task: uint16(task), Index: taskDeadline}
}

// RefOfUpdate names the update of a job among what has deadlines.
func RefOfUpdate(job terms.JobID) SlotRef { return SlotRef{Job: job, Task: jobDeadline} }

// RefOfNode names a node among what has deadlines.
func RefOfNode(n NodeIndex) SlotRef { return SlotRef{Index: uint32(n)} }

const (
	jobDeadline  = 0xffff
	taskDeadline = 0xffff_ffff
)

// BesideFirst orders seats for what is done to one after the other: when a main one ends at once, one beside it may
// take its place, and that must not be one to which it is still to be done.
func BesideFirst(r, other SlotRef) int { return cmp.Compare(other.Seat, r.Seat) }

// Seat tells the allocations of one slot apart.
type Seat uint8

// The seats.
const (
	// MainSeat has the allocation that fills the slot.
	MainSeat Seat = iota
	// CanarySeat has one of the new version that is tried beside it.
	CanarySeat
	// UnknownSeat has the one that filled the slot before its node left.
	UnknownSeat
	SeatCount
)

// String returns the seat as people read it.
func (s Seat) String() string { return [...]string{"main", "canary", "unknown"}[s] }

// SeatKey orders the seats of a task by slot.
type SeatKey uint64

// KeyOfSeat returns the key of a seat.
func KeyOfSeat(r SlotRef) SeatKey { return SeatKey(r.Index)<<2 | SeatKey(r.Seat) }

// In returns the seat of a task.
func (k SeatKey) In(job terms.JobID, task int) SlotRef {
	return SlotRef{Job: job, Task: uint16(task), Index: uint32(k >> 2), Seat: Seat(k & 3)}
}

// TaskKey orders tasks by the age of their jobs and then by number. Each has a second key, right behind the first, for
// those of its seats that wait for a particular node or version.
type TaskKey uint64

// KeyOf returns the key of a task.
func KeyOf(job terms.JobID, task int) TaskKey { return TaskKey(job)<<17 | TaskKey(task)<<1 }

// Special returns the task's second key.
func (k TaskKey) Special() TaskKey { return k | 1 }

// IsSpecial tells whether it is a second key.
func (k TaskKey) IsSpecial() bool { return k&1 == 1 }

// Split returns the job and the number of the task.
func (k TaskKey) Split() (terms.JobID, int) { return terms.JobID(k >> 17), int(k >> 1 & 0xffff) }
