package peer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/journal"
	"starling/peer/inbox"
	"starling/replica/reaction"
	"starling/terms"
)

// marked is the value at an entry of which a snapshot is due.
type marked struct {
	value cluster.Frozen
	reaction.Snapshot
}

// SnapshotDuty is what can be done for a snapshot.
type SnapshotDuty uint8

// The duties: to keep the chunks with the journal, and look whether they are kept well; only to look, where another put
// them; to trim the journal.
const (
	PutSnapshot SnapshotDuty = iota + 1
	CheckSnapshot
	TrimJournal
)

// SnapshotWork is to be done for a snapshot, beside the loop, until SnapshotDone is told.
type SnapshotWork struct {
	Duty SnapshotDuty
	// Snapshot is the one that another kept, or up to which to trim.
	Snapshot facts.Snapshot
	// value is what to put, or to compare with.
	value  cluster.Frozen
	digest uint64
}

// Make returns the snapshot of this peer's own value, and its chunks.
func (w *SnapshotWork) Make() (facts.Snapshot, [][]byte) {
	s := w.value.Copy()
	data := snapshot.Encode(s.Facts())
	chunks := snapshot.Chunks(data, int(s.Limits.ChunkBytes))
	return facts.Snapshot{Index: s.Index, Digest: w.digest, Chunks: uint32(len(chunks)), Sum: sha256.Sum256(data)}, chunks
}

// mark keeps the value if a snapshot of it is due, as long as it is.
func (c *Core) mark() {
	n := &c.state.Snapshots
	switch {
	case n.Due == c.state.Index:
		c.marked = marked{c.state.Freeze(), reaction.Snapshot{Index: n.Due, Digest: c.state.Digest()}}
	case n.Due != c.marked.Index:
		if own := &c.marked.Snapshot; own.Index > 0 && own.Index == n.Confirmed.Index && own.Digest != n.Confirmed.Digest {
			c.Diverge(fmt.Sprintf("the value of this peer after entry %d has digest %016x, others have confirmed %016x",
				own.Index, own.Digest, n.Confirmed.Digest))
		}
		c.marked = marked{}
	}
}

// snapshotWork returns what is to be done next for a snapshot; nil for nothing.
func (c *Core) snapshotWork(r *reaction.Snapshots) *SnapshotWork {
	work := &SnapshotWork{value: c.marked.value, digest: c.marked.Digest}
	switch {
	case c.snapshotBusy:
		return nil
	case r.Put:
		work.Duty = PutSnapshot
	case r.Check.Index > 0:
		work.Duty, work.Snapshot = CheckSnapshot, r.Check
	case r.Trim.Index > c.trimmed:
		*work = SnapshotWork{Duty: TrimJournal, Snapshot: r.Trim}
	default:
		return nil
	}
	c.snapshotBusy = true
	return work
}

// SnapshotDone takes the news that work for a snapshot was done. Own is this peer's, if it was made; good tells that it
// is with the journal, or that the journal was trimmed.
func (c *Core) SnapshotDone(work *SnapshotWork, own facts.Snapshot, good bool) {
	c.snapshotBusy = false
	switch {
	case work.Duty == TrimJournal && good:
		c.trimmed = max(c.trimmed, work.Snapshot.Index)
	case own.Index == 0 || own.Index != c.marked.Index:
	default:
		c.marked.Own, c.marked.Kept = own, good
		c.marked.Damaged = work.Duty == CheckSnapshot && own == work.Snapshot && !good
	}
}

// ErrSnapshot tells that a snapshot cannot take the place of the entries that it stands for.
var ErrSnapshot = errors.New("this is not the snapshot that stands for entries which the journal does not have any more: " +
	"restore the cluster from a backup")

// Restore replaces the value by that of a snapshot, which stands for entries that the peer has not folded. After data
// that is not that snapshot, or one of a newer program, Halt has an answer.
func (c *Core) Restore(s facts.Snapshot, data []byte, own terms.Time) {
	if s.Index <= c.state.Index || c.halted != nil {
		return
	}
	all, err := snapshot.Decode(data, c.Knows)
	sum := sha256.Sum256(data)
	switch {
	case sum != s.Sum:
		err = fmt.Errorf("%w: it has SHA-256 %x, and should have %x", ErrSnapshot, sum, s.Sum)
	case errors.Is(err, snapshot.ErrNewer):
		err = fmt.Errorf("%w: %w", ErrProgram, err)
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrSnapshot, err)
	case all.Index != s.Index:
		err = fmt.Errorf("%w: it is of entry %d", ErrSnapshot, all.Index)
	}
	if err != nil {
		c.halted = fmt.Errorf("the snapshot of entry %d: %w", s.Index, err)
		return
	}
	c.trimmed = s.Index
	c.replace(cluster.Rebuild(all), own)
}

// replace goes on with another value.
func (c *Core) replace(s *cluster.State, own terms.Time) {
	c.state, c.marked = s, marked{}
	c.digest = c.state.Digest()
	c.clock.Heard(c.state.Time, own)
	name, incarnation := c.self.Split()
	if node := c.state.NodeOf(name); node != nil {
		c.outbox.Overtaken(node.LastSeq(incarnation))
	}
}

// snapshotPause is how long to wait before something is tried again that could not be done for a snapshot.
const snapshotPause = time.Second

// restored goes on from a snapshot.
func (p *Peer) restored(s journal.Snapshot, data []byte) {
	began, from := time.Now(), p.core.state.Index
	p.core.Restore(inbox.Named(s), data, p.now())
	if p.core.Halt() == nil {
		p.history.Restart(p.core.state.Index, p.core.digest)
		p.config.Archive.Restored(p.core.state, nil)
		p.log.Info("went on from a snapshot", "from", from, "to", p.core.state.Index, "bytes", len(data),
			"took", time.Since(began).String())
	}
	p.answerWaiting()
}

// snapshot does beside the loop what is to be done for a snapshot.
func (p *Peer) snapshot(ctx context.Context, work *SnapshotWork) {
	if work == nil {
		return
	}
	p.group.Go(func() {
		own, err := p.perform(ctx, work)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("something for a snapshot failed; trying again", "entry", cmp.Or(own.Index, work.Snapshot.Index), "error", err)
			inbox.Pause(ctx, snapshotPause)
		}
		p.post(ctx, func() { p.core.SnapshotDone(work, own, err == nil) })
	})
}

// errKept tells that what the journal keeps is not this peer's snapshot.
var errKept = errors.New("the chunks with the journal are not those of this peer's snapshot")

// perform returns this peer's snapshot, if it was made and the journal answered, and an error if that is not kept.
func (p *Peer) perform(ctx context.Context, work *SnapshotWork) (own facts.Snapshot, err error) {
	if work.Duty == TrimJournal {
		p.log.Info("trimming the journal", "entry", work.Snapshot.Index)
		return own, p.config.Journal.Trim(ctx, inbox.Kept(work.Snapshot))
	}
	began := time.Now()
	own, chunks := work.Make()
	p.log.Info("made a snapshot", "entry", own.Index, "chunks", own.Chunks, "took", time.Since(began).String())
	if work.Duty == PutSnapshot {
		if err := inbox.Put(ctx, p.config.Journal, inbox.Kept(own), chunks); err != nil {
			return facts.Snapshot{}, err
		}
	}
	data, err := inbox.Chunks(ctx, p.config.Journal, inbox.Kept(own))
	switch {
	case err != nil && !errors.Is(err, journal.ErrNoChunk):
		return facts.Snapshot{}, err
	case err == nil && sha256.Sum256(data) != own.Sum:
		err = errKept
	}
	return own, err
}

// SeedOf returns the snapshot with which a journal begins, and its chunks.
func SeedOf(s *cluster.State) (journal.Snapshot, [][]byte) {
	work := &SnapshotWork{value: s.Freeze(), digest: s.Digest()}
	own, chunks := work.Make()
	return inbox.Kept(own), chunks
}

// Seed lets an empty journal begin with a value, as if there had been entries up to its index.
func Seed(ctx context.Context, j journal.Journal, s *cluster.State) error {
	kept, chunks := SeedOf(s)
	if err := inbox.Put(ctx, j, kept, chunks); err != nil {
		return err
	}
	return j.Trim(ctx, kept)
}
