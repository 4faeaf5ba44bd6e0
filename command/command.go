// Package command holds the verbs that may enter the journal, and their stable encoding.
//
// An Entry is what one writer commits at once: many commands, one index. The encoding is for ever: a kind number is
// never used again for something else, and a changed command gets a new version of its kind. What is known is a
// question to the rules in force and never to the program, so that all peers refuse alike: see Decode.
package command

import (
	"strconv"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/codec"
	"starling/terms/rules"
)

// Limits of an entry.
const (
	// CommandsMax bounds the commands of one entry.
	CommandsMax = 4096
	// EntryBytesMax bounds an encoded entry; it leaves room below what journals take.
	EntryBytesMax = 1<<20 - 1<<12
	// RequestIDBytesMax bounds a request's id.
	RequestIDBytesMax = 64
	// OverheadBytesMax bounds what an entry has beside its commands.
	OverheadBytesMax = 128
)

// Entry is one element of the journal.
type Entry struct {
	// Rules is the number that a value must have for the entry to count. Decode sets it; 0 leaves it to Encode, which
	// writes what the commands need.
	Rules rules.Number
	// Writer wrote it; Seq numbers its entries and only grows: the fold drops an entry that is not above the last.
	Writer terms.PeerID
	Seq    uint64
	// Time is the writer's clock.
	Time terms.Time
	// Cause is the last entry the writer had folded when it wrote this one.
	Cause    terms.Index
	Commands []Command
	// Bytes is how many its encoding has. Decode sets it.
	Bytes uint32
}

// Kind names a command in the encoding.
type Kind uint16

// The kinds, under the names of the seed where it has them. Numbers are for ever.
const (
	KindPrepareJoin Kind = iota + 1
	KindNotifyJoin
	KindAcceptJoin
	KindAbortJoin
	KindLeave
	KindVolunteer
	KindSubmitJob
	KindKillJob
	KindReportTasks
	KindTellTime
	KindRaiseRules
	KindSteerUpdate
	KindRevertJob
	KindRestartJob
	KindEndAllocation
	KindDrainNode
	KindChangePools
	KindSuspendJob
	KindSealTask
	KindVouchSnapshot
	KindAs
	KindAddUser
	KindRemoveUser
	KindAddToken
	KindRemoveToken
	KindAdmitNode
	KindRemoveNode
	KindTakeSnapshot
	KindAddAuthority
	KindRemoveAuthority
	KindRemoveVolumes
	KindPutSecret
	KindSealSecret
	KindRemoveSecret
	KindMoveVolumes
	kindEnd
)

// String returns the command's name, or its number if this program has none for it.
func (k Kind) String() string {
	switch {
	case k == KindPassTime:
		return "pass-time"
	case k == 0 || k >= kindEnd:
		return "kind-" + strconv.Itoa(int(k))
	}
	return [...]string{"prepare-join-cluster", "notify-join-cluster", "accept-join-cluster", "abort-join-cluster",
		"leave-cluster", "volunteer-for-task", "submit-job", "kill-job", "report-tasks", "tell-time", "raise-rules",
		"steer-update", "revert-job", "restart-job", "end-allocation", "drain-node",
		"change-pools", "suspend-job", "seal-task", "vouch-snapshot", "as", "add-user", "remove-user", "add-token",
		"remove-token", "admit-node", "remove-node", "take-snapshot", "add-authority", "remove-authority",
		"remove-volumes", "put-secret", "seal-secret", "remove-secret", "move-volumes"}[k-1]
}

// Command is one verb with its arguments.
type Command interface {
	// Kind names the command in the encoding.
	Kind() Kind
	code(*codec.Coder)
}

// PrepareJoin asks that a member be chosen to observe the joiner. Its author is the joiner.
type PrepareJoin struct {
	Joiner terms.PeerID
	// Attempt is one more than the joiner's last.
	Attempt uint32
}

// NotifyJoin tells the joiner that its observer watches it. Its author is the observer.
type NotifyJoin struct {
	Joiner  terms.PeerID
	Attempt uint32
}

// AcceptJoin makes the joiner a member between its observer and whom that watches. Its author is the joiner.
type AcceptJoin struct {
	Joiner, Observer terms.PeerID
	Attempt          uint32
}

// AbortJoin ends an attempt; the joiner may begin the next. Its author is the joiner.
type AbortJoin struct {
	Joiner  terms.PeerID
	Attempt uint32
}

// Leave reports that a peer's pulse has ended, or says goodbye. Anybody who saw it may write it.
type Leave struct{ Peer terms.PeerID }

// Volunteer says what a member's node gives to the cluster. Its author is the member.
type Volunteer struct {
	Peer  terms.PeerID
	Offer terms.Offer
}

// SubmitJob brings a job, or a new version of one that has not finished.
type SubmitJob struct {
	// RequestID makes repetitions harmless; it may be empty.
	RequestID string
	// Against is the version that the writer saw, 0 for no job; the command is refused if it is another.
	Against uint32
	Spec    terms.Job
}

// KillJob ends a job for good.
type KillJob struct {
	RequestID string
	Job       terms.JobName
	// Against is the version that the writer saw; 0 ends any.
	Against uint32
	// Now ends its instances without delay and grace, those that are being stopped, too.
	Now bool
}

// Steering is what a user does to an update that runs.
type Steering uint8

// The ways to steer.
const (
	// Pause lets what is under way end and begins nothing; Resume goes on.
	Pause Steering = iota + 1
	Resume
	// Promote lets the canaries take their places and the rest follow.
	Promote
	// Fail ends the update as a failure of its own would: with a rollback if the job asks for one. Abort ends it and
	// leaves the instances as they are.
	Fail
	Abort
)

// Steerings lists every way's name at its number.
func Steerings() []string { return []string{"", "pause", "resume", "promote", "fail", "abort"} }

// String returns the way's name.
func (s Steering) String() string { return Steerings()[s] }

// SteerUpdate steers the update of a job to the given version.
type SteerUpdate struct {
	RequestID string
	Job       terms.JobName
	Version   uint32
	Steering  Steering
}

// RevertJob makes a copy of an earlier version the newest.
type RevertJob struct {
	RequestID string
	Job       terms.JobName
	// Against is the version that the writer saw, To the one to go back to.
	Against, To uint32
}

// RestartJob replaces all instances of a job, or of one task, by new ones of the same version, as an update.
type RestartJob struct {
	RequestID string
	Job       terms.JobName
	Against   uint32
	// Task is empty for all.
	Task terms.TaskName
}

// SuspendJob ends all instances of a job and starts none until it is resumed.
type SuspendJob struct {
	RequestID string
	Job       terms.JobName
	Against   uint32
	// Resume takes the suspension back.
	Resume bool
}

// SealTask says that an allocation has seen the end of its task's input: no instance that has not begun is needed. The
// first to say so is granted it.
type SealTask struct {
	RequestID string
	Slot      terms.SlotName
	Order     terms.Index
}

// EndAllocation ends one allocation; another takes its place, on its node or elsewhere.
type EndAllocation struct {
	RequestID string
	Slot      terms.SlotName
	Order     terms.Index
	// Elsewhere looks for another node.
	Elsewhere bool
	// WithoutVolumes gives the slot's volumes up: they no longer tie it to their node. When it has a place on another, it
	// begins there with empty ones, and the old ones are deleted.
	WithoutVolumes bool
	// Now ends it without delay and grace, even if it is being stopped already.
	Now bool
}

// RemoveVolumes deletes what is in volumes that no instance has and no job that runs may come back for.
type RemoveVolumes struct {
	RequestID string
	Volumes   terms.VolumeSet
}

// MoveVolumes notes that the writer's node has a set of volumes from now on, instead of the node that had it: its peer
// has copied what the last allocation left in them.
type MoveVolumes struct {
	RequestID string
	Volumes   terms.VolumeSet
	// Order is that of the last allocation before they were copied. If there was another meanwhile, they do not move.
	Order terms.Index
}

// DrainNode moves what runs on a node to others and gives it nothing new; or takes that back.
type DrainNode struct {
	RequestID string
	Node      terms.NodeName
	// Drain is false to take a drain back.
	Drain bool
	// DeadlineMillis is after which time whatever still runs there is stopped; 0 is at once.
	DeadlineMillis uint32
}

// ChangePools changes the tree of resource pools, all at once or not at all.
type ChangePools struct {
	RequestID string
	// Against is the version of the tree that the writer saw; 0 is any.
	Against uint32
	// Pools are created, or replace those with the same paths.
	Pools []terms.Pool
	// Gone are deleted.
	Gone []terms.PoolPath
}

// ReportTasks tells what became of allocations. Its author is the member on whose node they are.
type ReportTasks struct {
	Peer    terms.PeerID
	Reports []Report
}

// Report is the news of one allocation: of the slot, as ordered by that entry.
type Report struct {
	// Slot and Order name the allocation. Its seat is where the writer last saw it; it may have moved since.
	Slot  facts.SlotRef
	Order terms.Index
	// Ended is NotEnded for an allocation that runs.
	Ended    facts.Ending
	ExitCode int32
	// Ready tells that it runs and all its checks have passed. An instance that was ready, and of which this is told
	// without Ready, is not ready any more; that counts for tasks with terms.Task.AsksReadiness.
	Ready bool
	// Detail says more about an end that was a failure, or why it is not ready any more; it may be empty.
	Detail string
}

// TellTime does nothing but let the entry's time pass, so that deadlines are met and left-over work goes on.
type TellTime struct{}

// RaiseRules lets all peers fold by the next version of the rules, from the entry after this one.
type RaiseRules struct{ Version rules.Number }

// VouchSnapshot says that the snapshot is the value that its author had at the entry, and that its chunks are kept with
// the journal.
type VouchSnapshot struct{ Snapshot facts.Snapshot }

// Kind returns KindVouchSnapshot.
func (*VouchSnapshot) Kind() Kind { return KindVouchSnapshot }

// Kind returns KindPrepareJoin.
func (*PrepareJoin) Kind() Kind { return KindPrepareJoin }

// Kind returns KindNotifyJoin.
func (*NotifyJoin) Kind() Kind { return KindNotifyJoin }

// Kind returns KindAcceptJoin.
func (*AcceptJoin) Kind() Kind { return KindAcceptJoin }

// Kind returns KindAbortJoin.
func (*AbortJoin) Kind() Kind { return KindAbortJoin }

// Kind returns KindLeave.
func (*Leave) Kind() Kind { return KindLeave }

// Kind returns KindVolunteer.
func (*Volunteer) Kind() Kind { return KindVolunteer }

// Kind returns KindSubmitJob.
func (*SubmitJob) Kind() Kind { return KindSubmitJob }

// Kind returns KindKillJob.
func (*KillJob) Kind() Kind { return KindKillJob }

// Kind returns KindReportTasks.
func (*ReportTasks) Kind() Kind { return KindReportTasks }

// Kind returns KindTellTime.
func (*TellTime) Kind() Kind { return KindTellTime }

// Kind returns KindRaiseRules.
func (*RaiseRules) Kind() Kind { return KindRaiseRules }

// Kind returns KindSteerUpdate.
func (*SteerUpdate) Kind() Kind { return KindSteerUpdate }

// Kind returns KindRevertJob.
func (*RevertJob) Kind() Kind { return KindRevertJob }

// Kind returns KindRestartJob.
func (*RestartJob) Kind() Kind { return KindRestartJob }

// Kind returns KindSuspendJob.
func (*SuspendJob) Kind() Kind { return KindSuspendJob }

// Kind returns KindSealTask.
func (*SealTask) Kind() Kind { return KindSealTask }

// Kind returns KindEndAllocation.
func (*EndAllocation) Kind() Kind { return KindEndAllocation }

// Kind returns KindRemoveVolumes.
func (*RemoveVolumes) Kind() Kind { return KindRemoveVolumes }

// Kind returns KindMoveVolumes.
func (*MoveVolumes) Kind() Kind { return KindMoveVolumes }

// Kind returns KindDrainNode.
func (*DrainNode) Kind() Kind { return KindDrainNode }

// Kind returns KindChangePools.
func (*ChangePools) Kind() Kind { return KindChangePools }
