package reaction

import (
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/terms"
)

// snapshotTurnMillis is how long each member waits for the one before it to do what one of them must about a snapshot.
const snapshotTurnMillis = 3000

// Snapshots is what a peer has to do with snapshots of the value. Each is empty if it has nothing to.
type Snapshots struct {
	// Put tells that the one that is due is to be kept with the journal.
	Put bool
	// Check is one of which the chunks are to be read and compared; up to Trim the journal is to be trimmed.
	Check, Trim facts.Snapshot
}

// Snapshot is what a peer knows of the snapshot that is due.
type Snapshot struct {
	// Index is that of the entry of which it still has the value, 0 if it has not; Digest is that of the value.
	Index  terms.Index
	Digest uint64
	// Own is the snapshot of that, once it was made.
	Own facts.Snapshot
	// Kept tells that the chunks of Own are kept with the journal; Damaged that they were read and are not those of Own.
	Kept, Damaged bool
}

// snapshot takes part in the snapshot that is due. One member keeps it with the journal, others look whether it is
// theirs and kept well, as many as must vouch for it. Whoever finds it damaged keeps it once more when it is its turn.
func (r *reacting) snapshot() {
	n, own := &r.s.Snapshots, &r.o.Snapshot
	if !r.s.IsMember(r.self) {
		return
	}
	if n.Confirmed.Index > 0 && r.turn(n.By, n.Confirmed.Index) == 0 {
		r.out.Snapshots.Trim = n.Confirmed
	}
	if r.o.Full && snapshot.MayAsk(&r.s.Head) && r.turn("", n.Confirmed.Index) == 0 {
		r.write(&command.TakeSnapshot{})
	}
	if n.Due == 0 || own.Index != n.Due || snapshot.Vouched(n, r.self) {
		return
	}
	turn := r.turn("", n.Due)
	vouched, found := r.vouched()
	wait := turn
	if found {
		wait = max(0, turn-snapshot.VouchesMin+1)
	}
	at := n.DueAt + terms.Time(wait)*snapshotTurnMillis
	switch {
	case own.Kept:
		r.write(&command.VouchSnapshot{Snapshot: own.Own})
	case r.o.Now < at:
		r.askAgain(at)
	case found:
		r.out.Snapshots.Check = vouched
	default:
		r.out.Snapshots.Put = true
	}
}

// vouched returns a snapshot of the value that this peer had, too, for which another vouches.
func (r *reacting) vouched() (s facts.Snapshot, found bool) {
	own := &r.o.Snapshot
	for _, v := range r.s.Snapshots.Vouches {
		made := own.Own != facts.Snapshot{}
		if v.Snapshot.Digest == own.Digest && !own.Damaged && (!made || v.Snapshot == own.Own) {
			return v.Snapshot, true
		}
	}
	return s, false
}

// turn is how many members come before this one for something that one does about an entry: first if that is a member,
// then by rank.
func (r *reacting) turn(first terms.PeerID, index terms.Index) int {
	members := r.s.Members()
	start := int(uint64(index) % uint64(members))
	if r.s.IsMember(first) {
		start = r.s.Rank(first)
	}
	return (r.s.Rank(r.self) - start + members) % members
}
