package reconcile

// Reason says in plain words why a seat is as it is, or why an instance is stopped.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota

	// Of a seat that is kept.

	AsAsked
	Done
	WaitsForNode
	WaitsForOther
	OutOfAttempts
	NotRetried
	AwaitsTurn
	LacksRoom
	HeldByUnhealthy
	HeldByPause
	HeldByFailure
	AwaitsPromotion
	Outdated

	// Of an empty seat.

	WaitsToRetry
	NotWanted
	NodeClosed

	// Of a seat that is filled.

	NeverFilled
	Emptied
	AfterLoss
	AfterStop
	AfterMove
	AfterFailure
	AsCanary

	// Of a stop.

	NotNeeded
	Duplicate
	CanaryOver
	NodeLost
	Moved
	Failed
	FailedAway
	ReturnedOutdated
	OtherKept
	OriginalKept

	ReasonCount
)

// String returns the reason as people read it. Where it speaks of a time, that stands beside it.
func (r Reason) String() string { return reasons[r] }

// GivenUp tells whether a failed instance keeps its seat, and has no next attempt as things are.
func (r Reason) GivenUp() bool {
	return r == OutOfAttempts || r == NotRetried || r == HeldByFailure
}

var reasons = [ReasonCount]string{
	NoReason:         "",
	AsAsked:          "runs as asked",
	Done:             "done: batch work is not run again",
	WaitsForNode:     "its node is out of reach: waits for it",
	WaitsForOther:    "its node is out of reach: waits until another takes its place",
	OutOfAttempts:    "failed, and out of attempts",
	NotRetried:       "failed, and is not tried again",
	AwaitsTurn:       "outdated: waits for its turn in the update",
	LacksRoom:        "outdated: its successor lacks room",
	HeldByUnhealthy:  "held: an instance of the update is unhealthy",
	HeldByPause:      "held: the update is paused",
	HeldByFailure:    "held: the update failed",
	AwaitsPromotion:  "held: waits until the canaries are promoted",
	Outdated:         "replaced: outdated",
	WaitsToRetry:     "failed: waits until it is tried again",
	NotWanted:        "not wanted",
	NodeClosed:       "its node takes no instance now",
	NeverFilled:      "placed: never filled",
	Emptied:          "placed: the last instance ended",
	AfterLoss:        "placed: the last instance was lost",
	AfterStop:        "placed: the last instance was told to end",
	AfterMove:        "placed: the last instance must leave its node",
	AfterFailure:     "placed: the last instance failed or is out of reach",
	AsCanary:         "placed: canary of the update",
	NotNeeded:        "not needed",
	Duplicate:        "duplicate",
	CanaryOver:       "canary of an update that is over",
	NodeLost:         "its node is lost",
	Moved:            "must leave its node",
	Failed:           "failed, and is tried again",
	FailedAway:       "failed while it was out of reach",
	ReturnedOutdated: "returned, but is outdated or was to be moved",
	OtherKept:        "returned, but another has its place",
	OriginalKept:     "the instance that it replaced returned",
}
