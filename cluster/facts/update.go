package facts

import (
	"slices"

	"starling/terms"
	"starling/terms/rules"
)

// UpdateState is how far an update is.
type UpdateState uint8

// The states of an update. Succeeded, rolled back, failed and aborted are final.
const (
	// NoUpdate is the state of a job that has none.
	NoUpdate UpdateState = iota
	// RollingForward: instances are moved to the new version.
	RollingForward
	// Paused: what is under way ends, and nothing begins.
	Paused
	// RollingBackward: it failed, and instances are moved back to the version before.
	RollingBackward
	// UpdateSucceeded: all instances have the new version.
	UpdateSucceeded
	// RolledBack: all instances have the version before again.
	RolledBack
	// UpdateFailed: it failed, and instances stay as they are.
	UpdateFailed
	// UpdateAborted: its user ended it, or a newer update took its place.
	UpdateAborted
	UpdateStateCount
)

// String returns the state as the user guide writes it.
func (s UpdateState) String() string {
	return [...]string{"", "ROLLING_FORWARD", "PAUSED", "ROLLING_BACKWARD", "SUCCEEDED", "ROLLED_BACK", "FAILED",
		"ABORTED"}[s]
}

// Final tells whether the update has ended.
func (s UpdateState) Final() bool { return s >= UpdateSucceeded }

// Rolls tells whether instances are being moved.
func (s UpdateState) Rolls() bool { return s == RollingForward || s == RollingBackward }

// Update is the record of a job's latest update: its move from one version to another.
type Update struct {
	State UpdateState
	// Before is the state that a resume returns to.
	Before UpdateState
	// Promoted tells that the canaries were found good, or that there are none; Tried, that all were healthy last, and
	// nobody promoted them.
	Promoted, Tried bool
	// From is the version before, 0 if the update brings the job; To is the version that instances are moved to.
	From, To uint32
	// Began is the entry that began it.
	Began   terms.Index
	BeganAt terms.Time
	// ProgressAt is when an instance became healthy last, or when waiting for one began, and 0 while all that is tried
	// waits for room; EndedAt is when it ended.
	ProgressAt, EndedAt terms.Time
	// LookedAt is the entry with which room was looked for last in vain, for instances that are to take the place of
	// earlier ones.
	LookedAt terms.Index
	// Reason tells in words why it is paused or ended as it did; it may be empty.
	Reason string
}

// GoesBack tells whether the update goes back from one that failed, or would if it were not paused.
func (u *Update) GoesBack() bool { return u.State == RollingBackward || u.Before == RollingBackward }

// VersionKind is what brought a version.
type VersionKind uint8

// The kinds.
const (
	// Submitted: a user wrote it.
	Submitted VersionKind = iota + 1
	// Reverted: a user went back to version Of.
	Reverted
	// Restarted: a user asked for new instances of version Of.
	Restarted
	// WentBack: a failed update went back to version Of.
	WentBack
)

// String returns the kind in words.
func (k VersionKind) String() string {
	return [...]string{"unknown", "submitted", "reverted", "restarted", "rolled back"}[k]
}

// JobVersion is one version of a job.
type JobVersion struct {
	Number uint32
	// Of is the version that it is a copy of, 0 if it is none.
	Of   uint32
	Kind VersionKind
	// Outcome is how the update to it ended, NoUpdate while it has not.
	Outcome UpdateState
	// Task is the only one that was restarted, "" for all.
	Task  terms.TaskName
	Index terms.Index
	At    terms.Time
	Spec  *terms.Job
	// SpecHash is the fingerprint of Spec, SpecBytes how much that takes.
	SpecHash  uint64
	SpecBytes int64
}

// TakenBack tells whether an update that failed went back from a version to one before it.
func TakenBack(versions []JobVersion, number uint32, in rules.Number) bool {
	return in >= rules.RestartsUndone && slices.ContainsFunc(versions, func(v JobVersion) bool {
		return v.Kind == WentBack && v.Of < number && number < v.Number
	})
}
