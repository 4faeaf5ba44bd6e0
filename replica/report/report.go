package report

import (
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// Receipt is the answer to a command that was submitted through a peer.
type Receipt struct {
	// Index is the entry that carried the command.
	Index terms.Index
	// Refusal is zero for a command that was obeyed.
	Refusal facts.Refusal
	Job     terms.JobName
}

// Folded is an entry with what it did, as a peer remembers it.
type Folded struct {
	Index terms.Index
	// Entry is nil if the bytes were none that this program knows; Outcome.Dropped says why.
	Entry   *command.Entry
	Outcome Outcome
	// Digest of the value after it.
	Digest uint64
	// Bytes is the size of the encoded entry.
	Bytes int
}

// PulseView is what a peer publishes with its pulse.
type PulseView struct {
	Peer  terms.PeerID
	Alive bool
	// Index and Digest are of the same moment, at most a second or two old.
	Index   terms.Index
	Digest  uint64
	Address string
	// OfferRefusal is why the fold refuses what the peer's node offers, "" if it takes it.
	OfferRefusal string
}

// PeerStatus is what a peer knows of itself.
type PeerStatus struct {
	Self terms.PeerID
	// Phase is "joining", "member", "diverged" or "stopped".
	Phase string
	Index terms.Index
	// OfferRefusal is why the fold refuses what the node offers, so that it gets no work; "" if it takes it.
	OfferRefusal string
	// Warnings are a line each: what this machine cannot do, and what is wrong now.
	Warnings []string
	// Troubles are why it does not serve as it should; none if it does.
	Troubles []Trouble
	// Requests counts those that wait to become entries, or to be folded.
	Requests int
	// JournalUsed is how much the journal's engine holds, JournalQuota how much it may, in bytes; 0 if not known.
	JournalUsed, JournalQuota int64
	// Waits says what allocations of this node wait for that are not started yet, or not ready.
	Waits map[terms.AllocationID]string
}

// Trouble is why a peer does not serve as it should.
type Trouble struct {
	Kind TroubleKind
	// Reason tells more, for users.
	Reason string
}

// TroubleKind classifies troubles, in a word or two that everybody may read.
type TroubleKind string

// The kinds of trouble.
const (
	// NotMember: the peer is joining, has left or has stopped, and its machine gets no work.
	NotMember TroubleKind = "not a member"
	// Diverged: its value differs from others'.
	Diverged TroubleKind = "diverged"
	// NoQuorum: the journal does not answer, or takes nothing.
	NoQuorum TroubleKind = "no quorum"
	// JournalFull: new jobs are refused.
	JournalFull TroubleKind = "journal full"
)

// TroubleKinds lists all kinds.
func TroubleKinds() []TroubleKind { return []TroubleKind{NotMember, Diverged, NoQuorum, JournalFull} }
