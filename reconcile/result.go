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
	// Alter: its holder is changed while it runs.
	Alter
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
	// Weight is what the slot adds to the Rest while it is not listed.
	Weight Tally
}

// Verdict is what becomes of a seat, and why.
type Verdict struct {
	// Holder keeps the seat, or had it last; 0 if none ever did.
	Holder terms.Index
	// Until is the time that the reason speaks of, or 0.
	Until   terms.Time
	Version uint32 // of the holder
	Action  Action
	Reason  Reason

	// stop is why the holder is stopped when the action is taken.
	stop Reason
	// lostAt is when the holder counts as lost if it stays out of reach.
	lostAt terms.Time
	// ill tells that the holder is not known to be healthy.
	ill bool
	// disconnects and returns tell to write down that the holder is out of reach, or back; records, that it waits.
	disconnects, returns, records bool
}

// Result is what is to be done about a task. It is the caller's, and may be used again.
type Result struct {
	// Decisions has one entry for each slot of the input.
	Decisions    []Decision
	Placements   []Placement
	Replacements []Replacement
	Changes      []Reference
	Stops        []Stopping
	// Disconnects are out of reach from now on, Reconnects are not any more.
	Disconnects, Reconnects []Reference
	// Waits are to be written down: the slot is to be looked at again.
	Waits  []Wait
	Counts Counts
	Update UpdateChange
	// Held says why nothing is filled for the first time or replaced, NoReason if it may be.
	Held Reason
}

// Reference names an allocation of a slot.
type Reference struct {
	Index uint32
	Order terms.Index
}

// Replacement asks for an instance in the stead of one that runs until then.
type Replacement struct {
	Reference
	// Seat is the CanarySeat if it is a canary of a daemon.
	Seat Seat
}

// Placement asks for an instance.
type Placement struct {
	Index    uint32
	Seat     Seat
	Reason   Reason
	Previous terms.Index
	// Stable asks for the version that was promoted last, at least VersionMin, instead of the present one.
	Stable     bool
	VersionMin uint32
}

// Stopping stops an allocation.
type Stopping struct {
	Reference
	Reason Reason
	// Client is what its program counts as from now on, NoClient if that does not change.
	Client Client
	// Closes tells that nothing follows it, Parks that it waits until it may be placed again.
	Closes, Parks bool
}

// Wait tells that a slot is to be looked at again for an allocation's sake.
type Wait struct {
	Reference
	At   terms.Time
	Kind WaitKind
}

// WaitKind is what is waited for.
type WaitKind uint8

// The kinds of wait.
const (
	// UntilRetry: it may be placed again then.
	UntilRetry WaitKind = iota
	// UntilLost: it counts as lost then.
	UntilLost
	// UntilStopped: it has stopped itself by then.
	UntilStopped
)

// Counts says how much is done, and of what.
type Counts struct {
	Place, Replace, Change, Stop, Ignore, Migrate, Canary, Disconnect, Reconnect int32
	RetryNow, RetryLater                                                         int32
}

// UpdateChange is what becomes of the update's record as far as the task is concerned.
type UpdateChange struct {
	// Begins tells that the task joins an update, with Total and Canaries.
	Begins bool
	Total  uint32
	// Canaries are those wanted now; Promotable tells that all of them are healthy.
	Canaries   uint32
	Promotable bool
	// Complete tells that nothing is left to do for the present update.
	Complete bool
}

func (r *Result) reset() {
	*r = Result{
		Decisions: r.Decisions[:0], Placements: r.Placements[:0], Replacements: r.Replacements[:0], Changes: r.Changes[:0],
		Stops: r.Stops[:0], Disconnects: r.Disconnects[:0], Reconnects: r.Reconnects[:0], Waits: r.Waits[:0],
	}
}
