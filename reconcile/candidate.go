package reconcile

import (
	"starling/cluster/retries"
	"starling/terms"
)

// Slot is the place of one instance with all its candidates.
type Slot struct {
	Index uint32
	// Closed tells that it belongs to a node that takes no instance now.
	Closed     bool
	Candidates []Candidate
}

// Candidate is an allocation of a slot, in any state.
type Candidate struct {
	// Order names the allocation within its slot; a later one has a higher order.
	Order terms.Index
	// Update is the one that placed it, 0 if none did; CanaryOf the one that it is a canary of, 0 if none.
	Update, CanaryOf terms.Index
	Version          uint32
	// Own is the spec of its own version; nil if it is the task's.
	Own *terms.Task
	// Attempts are those that led to it, oldest first.
	Attempts []retries.Attempt
	// FailedAt is when its program ended.
	FailedAt terms.Time
	// UnknownSince is when it was last recorded as out of reach, or 0.
	UnknownSince terms.Time
	// Started is when it began to run without a break; 0 if it did not.
	Started terms.Time

	Client Client
	Node   NodeState
	Health Health
	// Outdated tells that the task's present version asks for another one in its place.
	Outdated bool
	// Told tells that it was told to end, Again that it has, and that another is to follow whatever holds the task.
	Told, Again bool
	// Final tells that it has failed for good, whatever attempts there are.
	Final bool
	// Migrate tells that it must leave its node.
	Migrate bool
	// Unknown tells that what was recorded of it last is that it is out of reach: if it is seen again, it returns.
	Unknown bool
	// Due tells that the time has come at which it may be tried again, whatever the clock says.
	Due bool
}

// Client is what is known of an allocation's program.
type Client uint8

// The values of Client. NoClient stands for no change where one is asked for.
const (
	NoClient Client = iota
	PendingClient
	RunningClient
	CompleteClient
	FailedClient
	LostClient
	UnknownClient
)

// NodeState is the state of the node that an allocation is on.
type NodeState uint8

// The states of a node: its member is there, is out of reach and may come back, or is gone for good.
const (
	NodeReady NodeState = iota
	NodeDisconnected
	NodeGone
)

// Health is what the update says that placed an allocation.
type Health uint8

// The healths.
const (
	Unjudged Health = iota
	Healthy
	Unhealthy
)

// ended tells whether its program has ended, or never will run again.
func (c *Candidate) ended() bool {
	return c.Client == CompleteClient || c.Client == FailedClient || c.Client == LostClient
}

// returns tells whether it was out of reach and is not marked as seen again.
func (c *Candidate) returns() bool {
	return c.Unknown && (c.Client == UnknownClient || c.Client == RunningClient || c.Client == FailedClient)
}
