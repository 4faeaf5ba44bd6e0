package snapshot

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/rules"
)

// VouchesMin is how many members must vouch for a snapshot; if there are fewer members, all must.
const VouchesMin = 3

// overdue is how many times the entries or bytes must pass until a snapshot is given up for a later one: it may be that
// nobody has its value any more.
const overdue = 4

// Count counts a record of so many bytes that was folded, and lets a snapshot be due if it is time.
func Count(h *facts.Head, bytes uint64) {
	if h.Rules < rules.Snapshots {
		return
	}
	n, most, mostBytes := &h.Snapshots, h.Limits.SnapshotEntries, h.Limits.SnapshotBytes
	n.Entries, n.Bytes = n.Entries+1, n.Bytes+bytes
	if n.Due != 0 {
		most, mostBytes = overdue*most, overdue*mostBytes
	}
	if n.Entries >= most || n.Bytes >= mostBytes {
		n.Entries, n.Bytes, n.Due, n.DueAt, n.Vouches = 0, 0, h.Index, h.Time, nil
	}
}

// askAfter is how many entries, and which part of those between two snapshots, must have been folded since one was due
// until another may be asked for.
const (
	askAfter     = 256
	askAfterPart = 4
)

// Ask lets a snapshot be due with the entry that is folded, or refuses.
func Ask(h *facts.Head) (r facts.Refusal) {
	switch n := &h.Snapshots; {
	case n.Due != 0:
		r = facts.Refusal{Code: facts.Conflict, Reason: fmt.Sprintf("a snapshot is due already, of entry %d", n.Due)}
	case !MayAsk(h):
		r = facts.Refusal{Code: facts.Conflict,
			Reason: fmt.Sprintf("only %d entries were folded since the last snapshot was due", n.Entries)}
	default:
		n.Bytes = h.Limits.SnapshotBytes // Count sees that it is time
	}
	return r
}

// MayAsk tells whether so much was folded since the last snapshot that another may be asked for.
func MayAsk(h *facts.Head) bool {
	return h.Rules >= rules.Registry && h.Snapshots.Due == 0 &&
		h.Snapshots.Entries >= max(1, min(askAfter, h.Limits.SnapshotEntries/askAfterPart))
}

// Vouch takes the word of one of so many members for a snapshot, which is confirmed when enough of them have given it.
// It returns why it does not, "" if it does.
func Vouch(n *facts.Snapshots, v facts.Vouch, members int) (refusal string) {
	switch {
	case n.Due == 0 || v.Snapshot.Index != n.Due:
		return fmt.Sprintf("no snapshot of entry %d is due", v.Snapshot.Index)
	case Vouched(n, v.Peer):
		return fmt.Sprintf("%s has vouched for a snapshot of entry %d already", v.Peer, n.Due)
	}
	n.Vouches = append(slices.Clip(n.Vouches), v)
	same, first := 0, terms.PeerID("")
	for _, other := range n.Vouches {
		if other.Snapshot == v.Snapshot {
			if same++; same == 1 {
				first = other.Peer
			}
		}
	}
	if same >= min(members, VouchesMin) {
		n.Confirmed, n.By, n.Due, n.DueAt, n.Vouches = v.Snapshot, first, 0, 0, nil
	}
	return ""
}

// Vouched tells whether a member has given its word for the snapshot that is due.
func Vouched(n *facts.Snapshots, p terms.PeerID) bool {
	return slices.ContainsFunc(n.Vouches, func(v facts.Vouch) bool { return v.Peer == p })
}
