// Package command holds the verbs that may enter the journal, and their stable encoding.
//
// An Entry is what one writer commits at once: many commands, one index. The encoding is versioned: a kind number
// is never used again for something else, a changed command gets a new kind, and what is not known is refused.
package command

import "starling/cluster"

// Limits of an entry.
const (
	// CommandsMax bounds the commands of one entry.
	CommandsMax = 4096
	// EntryBytesMax bounds an encoded entry; it leaves room below what journals take.
	EntryBytesMax = 1<<20 - 1<<12
	// RequestIDBytesMax bounds a request's id.
	RequestIDBytesMax = 64
)

// Entry is one element of the journal.
type Entry struct {
	// Writer wrote it; Seq numbers its entries and only grows: the fold drops an entry that is not above the last.
	Writer cluster.PeerID
	Seq    uint64
	// Time is the writer's clock.
	Time cluster.Time
	// Cause is the last entry the writer had folded when it wrote this one.
	Cause    cluster.Index
	Commands []Command
}

// Kind names a command in the encoding.
type Kind uint8

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
	kindEnd
)

// String returns the command's name.
func (k Kind) String() string {
	return [...]string{"unknown", "prepare-join-cluster", "notify-join-cluster", "accept-join-cluster", "abort-join-cluster",
		"leave-cluster", "volunteer-for-task", "submit-job", "kill-job", "report-tasks", "tell-time", "raise-rules"}[k]
}

// Command is one verb with its arguments.
type Command interface {
	// Kind names the command in the encoding.
	Kind() Kind
	code(*coder)
}

// PrepareJoin asks that a member be chosen to observe the joiner. Its author is the joiner.
type PrepareJoin struct {
	Joiner cluster.PeerID
	// Attempt is one more than the joiner's last.
	Attempt uint32
}

// NotifyJoin tells the joiner that its observer watches it. Its author is the observer.
type NotifyJoin struct {
	Joiner  cluster.PeerID
	Attempt uint32
}

// AcceptJoin makes the joiner a member between its observer and whom that watches. Its author is the joiner.
type AcceptJoin struct {
	Joiner, Observer cluster.PeerID
	Attempt          uint32
}

// AbortJoin ends an attempt; the joiner may begin the next. Its author is the joiner.
type AbortJoin struct {
	Joiner  cluster.PeerID
	Attempt uint32
}

// Leave reports that a peer's pulse has ended, or says goodbye. Anybody who saw it may write it.
type Leave struct{ Peer cluster.PeerID }

// Volunteer says what a member's node gives to the cluster. Its author is the member.
type Volunteer struct {
	Peer  cluster.PeerID
	Offer cluster.Offer
}

// SubmitJob brings a job, or a new version of one that has not finished.
type SubmitJob struct {
	// RequestID makes repetitions harmless; it may be empty.
	RequestID string
	Spec      cluster.JobSpec
}

// KillJob ends a job for good.
type KillJob struct {
	RequestID string
	Job       cluster.JobName
}

// ReportTasks tells what became of allocations. Its author is the member on whose node they are.
type ReportTasks struct {
	Peer    cluster.PeerID
	Reports []Report
}

// Report is the news of one allocation: of the slot, as ordered by that entry.
type Report struct {
	Slot  cluster.SlotRef
	Order cluster.Index
	// Ended is NotEnded for an allocation that runs.
	Ended    cluster.Ending
	ExitCode int32
	// Detail says more about an end that was a failure; it may be empty.
	Detail string
}

// TellTime does nothing but let the entry's time pass, so that deadlines are met and left-over work goes on.
type TellTime struct{}

// RaiseRules switches all peers to a newer version of the fold at this entry.
type RaiseRules struct{ Version uint32 }

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
