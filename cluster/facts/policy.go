package facts

import (
	"starling/terms"
	"starling/terms/lifecycle"
)

// PolicyOutcome is how a job ends that a policy has ended.
type PolicyOutcome uint8

// The outcomes of policies.
const (
	// NoOutcome is that of a job which ends by itself, or because a user stopped it.
	NoOutcome PolicyOutcome = iota
	// Terminated ends it as a failure, Completed as a success.
	Terminated
	Completed
)

// PolicyState is what policies, or other jobs, made of a job. The zero PolicyState is none.
type PolicyState struct {
	Outcome PolicyOutcome
	// Restarts is how often they restarted all of it in its newest version.
	Restarts uint32
	// Last is the latest that followed.
	Last PolicyAction
}

// PolicyAction is what followed from a policy, from enough successes, or from the end of a job that this one came
// after, and why.
type PolicyAction struct {
	// Entry is that of the journal with which it was done, 0 for nothing.
	Entry  terms.Index
	At     terms.Time
	Action lifecycle.Action
	// Event is what happened; 0 is that enough instances have succeeded.
	Event lifecycle.Event
	// OfJob tells that the policy is one of the job, and not of the task.
	OfJob bool
	// Spent tells that the restarts were used up, and the job has failed instead.
	Spent bool
	// Task and Index name the slot to which it happened, Order its allocation, and Ended and ExitCode how that ended.
	Task     uint16
	Index    uint32
	Order    terms.Index
	Ended    Ending
	ExitCode int32
	// Before is the job that did not succeed and that this one came after, which stopped it; "" if none did.
	Before terms.JobName
}

// Completion is what policies make of it that a task is complete. The zero Completion is nothing.
type Completion struct {
	// Due is when what a policy says of it follows, 0 for never.
	Due terms.Time
	// Followed tells that it has, which it does once until the task is not complete any more.
	Followed bool
}
