package reconcile

import "starling/terms"

// Slot is the place of one instance with all its candidates.
type Slot struct {
	Index      uint32
	Candidates []Candidate
}

// Candidate is an allocation of a slot, in any state.
type Candidate struct {
	// Order names the allocation within its slot; a later one has a higher order.
	Order terms.Index
	// Next is the allocation that took its place, 0 if none did.
	Next terms.Index
	// Update is the one that placed it, 0 if none did; CanaryOf the one that it is a canary of, 0 if none. It is set to 0
	// when the update promotes it, or before another update begins.
	Update, CanaryOf terms.Index
	Instance         terms.JobID
	Version          uint32
	// Own is the spec of its own version; nil if it is the task's.
	Own *terms.Task
	// Attempts are those that led to it, oldest first.
	Attempts []Attempt
	// FailedAt is when its program ended.
	FailedAt terms.Time
	// UnknownSince is when it was last recorded as out of reach, LostSince when it was first recorded as lost; or 0.
	UnknownSince, LostSince terms.Time
	// Started is when it began to run without a break; 0 if it did not.
	Started terms.Time
	// Score is how well its node suited it; 0 if not known.
	Score int32

	Desired  Desired
	Client   Client
	Node     NodeState
	Change   Change
	Health   Health
	FollowUp FollowUpState

	// Away tells that what was recorded of it last is that it is out of reach: if it is seen again, it returns.
	Away bool
	// Migrate, Reschedule and Force are marks: it must leave its node; it may be placed again although its update
	// runs; it must be placed again although it has no attempts left.
	Migrate, Reschedule, Force bool
	// Closed tells that nothing follows it (batch work that was drained); Parked, that it was stopped and waits until it
	// may be placed again.
	Closed, Parked bool
	// Succeeded tells that its programs ended well.
	Succeeded bool
	// Unplaced tells that it was told to stop for the sake of a reschedule that found no node.
	Unplaced bool
}

// Desired is what an allocation was told.
type Desired uint8

// The values of Desired.
const (
	Run Desired = iota
	Stop
	Evict
)

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

// The states of a node.
const (
	NodeReady NodeState = iota
	NodeDraining
	NodeInitializing
	NodeDisconnected
	NodeDown
	NodeGone
)

// Change is what the task's present version means for an allocation: nothing, a change while it runs, or another one
// in its place.
type Change uint8

// The changes, least first.
const (
	NoChange Change = iota
	InPlace
	Destructive
)

// Health is the verdict of the update that placed an allocation.
type Health uint8

// The verdicts.
const (
	Unjudged Health = iota
	Healthy
	Unhealthy
)

// FollowUpState tells whether a wait UntilRetry was written down for the candidate.
type FollowUpState uint8

// The states of a follow-up.
const (
	NoFollowUp FollowUpState = iota
	// FollowUpPending means that its time has not come.
	FollowUpPending
	// FollowUpDue means that its time has come, whatever the clock says.
	FollowUpDue
)

// toldToEnd tells whether it was told to stop or evicted.
func (c *Candidate) toldToEnd() bool { return c.Desired != Run }

// ended tells whether its program has ended, or never will run again.
func (c *Candidate) ended() bool {
	return c.Client == CompleteClient || c.Client == FailedClient || c.Client == LostClient
}

// terminal tells whether it does not run for good.
func (c *Candidate) terminal() bool { return c.toldToEnd() || c.ended() }

// returns tells whether it was out of reach and is not marked as seen again.
func (c *Candidate) returns() bool {
	return c.Away && (c.Client == UnknownClient || c.Client == RunningClient || c.Client == FailedClient)
}
