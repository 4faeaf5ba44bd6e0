package reconcile

import "starling/terms"

// Seat is one of the two seats of a slot.
type Seat uint8

// The seats.
const (
	MainSeat Seat = iota
	CanarySeat
)

// Action is what is done about a seat.
type Action uint8

// The actions.
const (
	// Keep: nothing is done, whether the seat is taken or empty.
	Keep Action = iota
	// Replace: its holder is stopped once another can be placed.
	Replace
	// Place: the seat is filled.
	Place
)

// Decision is what becomes of a slot.
type Decision struct {
	Index        uint32
	Main, Canary Verdict
	// Until is when the slot must be looked at again if nothing happens before; 0 means never.
	Until terms.Time
	// Weight is what the slot adds to the Tally while it is not listed.
	Weight Tally
}

// Verdict is what becomes of a seat, and why.
type Verdict struct {
	// Holder keeps the seat, or had it last; 0 if none ever did.
	Holder terms.Index
	// Until is the time that the reason speaks of, or 0.
	Until  terms.Time
	Action Action
	Reason Reason

	// stop is why the holder is stopped when the action is taken.
	stop Reason
	// ill tells that the holder is not known to be healthy.
	ill bool
	// disconnects and returns tell to write down that the holder is out of reach, or back.
	disconnects, returns bool
}

// Result is what is to be done about a task. It is the caller's, and may be used again.
type Result struct {
	// Decisions has one entry for each slot of the input.
	Decisions    []Decision
	Placements   []Placement
	Replacements []Reference
	Stops        []Stopping
	// Disconnects are out of reach from now on, Reconnects are not any more.
	Disconnects, Reconnects []Reference
	Counts                  Counts
	Update                  UpdateChange
	// Held says why nothing is filled for the first time or replaced, NoReason if it may be.
	Held Reason
}

// Reference names an allocation of a slot.
type Reference struct {
	Index uint32
	Order terms.Index
}

// Placement asks for an instance.
type Placement struct {
	Index    uint32
	Seat     Seat
	Reason   Reason
	Previous terms.Index
}

// Stopping stops an allocation.
type Stopping struct {
	Reference
	Reason Reason
	// Client is what its program counts as from now on, NoClient if that does not change.
	Client Client
}

// Counts says how much is done, and of what.
type Counts struct {
	Place, Replace, Stop, Ignore, Migrate, Canary, Disconnect, Reconnect int32
}

// UpdateChange is what becomes of the update's record as far as the task is concerned.
type UpdateChange struct {
	// Canaries are those wanted now; Promotable tells that all of them are healthy.
	Canaries   uint32
	Promotable bool
	// Complete tells that nothing is left to do for the present update.
	Complete bool
}

func (r *Result) reset() {
	*r = Result{
		Decisions: r.Decisions[:0], Placements: r.Placements[:0], Replacements: r.Replacements[:0],
		Stops: r.Stops[:0], Disconnects: r.Disconnects[:0], Reconnects: r.Reconnects[:0],
	}
}
