package report

import (
	"fmt"

	"starling/cluster/facts"
	"starling/terms"
)

// Outcome is what an entry did: the same on every peer.
type Outcome struct {
	Index terms.Index
	// Dropped says why the whole entry was passed over; it is empty for an entry that was taken.
	Dropped string
	// Results has one element per command of an entry that was taken.
	Results []Result
	// Effects are what changed, in order, in words that people read. They are kept only if Apply was asked to.
	Effects []Effect
	// Counts are kept only if Apply was asked for effects.
	Counts Counts
	// Visited is how many rows the fold has visited.
	Visited uint64
}

// Result is what one command came to.
type Result struct {
	// Refusal is zero for a command that was obeyed.
	Refusal facts.Refusal
	// Job is the job a command was about.
	Job terms.JobName
}

// Refuse returns what a command comes to that is refused for a reason.
func Refuse(code facts.Code, format string, args ...any) Result {
	return Result{Refusal: facts.Refusal{Code: code, Reason: fmt.Sprintf(format, args...)}}
}

// Refused tells whether the command was refused.
func (r Result) Refused() bool { return r.Refusal.Code != facts.OK }

// Effect is one change that an entry made beyond what its commands say.
type Effect struct {
	Kind EffectKind
	// Slot and Order name the allocation concerned; Slot.Job alone names a job; both may be zero.
	Slot  terms.SlotName
	Order terms.Index
	// Seat is that of the allocation in its slot.
	Seat facts.Seat
	// By is the job that it happened for, "" if there is none, or if its name is not to be told.
	By terms.JobName
	// Peer is the peer concerned, Node the node; either may be empty.
	Peer terms.PeerID
	Node terms.NodeName
	// Reason adds why, in words.
	Reason string
}

// EffectKind classifies effects.
type EffectKind uint8

// The kinds of effect.
const (
	// Joined and Left: Peer became a member, or is none any more.
	Joined EffectKind = iota + 1
	Left
	// Placed: the slot was given to Node.
	Placed
	// Started: Node reported that the allocation runs.
	Started
	// Ended: the allocation ended, as Reason tells.
	Ended
	// Lost: the allocation's node left.
	Lost
	// BackingOff: the slot will start again on its node later, as Reason tells.
	BackingOff
	// Stopping: Node was told to end the allocation.
	Stopping
	// JobFinished: the job ended, as Reason tells.
	JobFinished
	// Unhealthy: the allocation counts as failed, as Reason tells.
	Unhealthy
	// Updating: the job's update went on, as Reason tells.
	Updating
	// GaveWay: the allocation was chosen to give way, to what and by which rule By and Reason tell.
	GaveWay
	// Decided: something followed by a policy, as Reason tells.
	Decided
	// Unready: the allocation runs and is not ready any more, as Reason tells.
	Unready
	// More: there were more effects than are kept.
	More
)

// EffectsMax bounds the effects that are kept of one entry.
const EffectsMax = 1000

// String returns the kind in a word.
func (k EffectKind) String() string {
	return [...]string{"unknown", "joined", "left", "placed", "started", "ended", "lost", "backing off", "stopping",
		"job finished", "unhealthy", "update", "gave way", "policy", "not ready", "more"}[k]
}
