package facts

import "starling/terms"

// NominatedSeat is room on a node that is kept for instances of a waiting task.
type NominatedSeat struct {
	Task  int
	Node  NodeIndex
	Count uint32
	// Need is what each takes.
	Need terms.Amounts
}

// Nomination is what is kept for the waiting work of a job. Nobody else is given that room.
type Nomination struct {
	// Backfill tells that nothing was told to give way: what runs there ends by itself.
	Backfill bool
	Seats    []NominatedSeat
	// Leaving are those that were told to give way: on these nodes, or elsewhere for the sake of the pool.
	Leaving []SlotRef
}

// Starving is since when a pool's work waits for room although it is entitled to it, or others are less important.
type Starving struct {
	// At is when others are asked to give way; Failed tells that it was tried, and could not be.
	At     terms.Time
	Failed bool
}
