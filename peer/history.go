package peer

import (
	"context"
	"sync"

	"starling/cluster"
	"starling/journal"
	"starling/peer/digests"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/terms"
)

// Limits of what a peer remembers of the past.
const (
	// rememberedMax bounds the entries that Follow can go back, rememberedBytesMax their encoded size.
	rememberedMax      = 4096
	rememberedBytesMax = 32 << 20
)

// Archive keeps what a peer folds. It never keeps the peer waiting, and only reads the value before it returns.
type Archive interface {
	// Restored tells that the value is one that stands for all records up to its index, and no record led to it here: when
	// the peer starts, and when it takes a snapshot. It takes the place of a wrong one, unless that is nil.
	Restored(s, wrong *cluster.State)
	// Folded takes a record that was just folded, with the value after it.
	Folded(r journal.Record, s *cluster.State)
	// OtherPast tells whether this machine has folded entries that the journal has lost, once all was read up to one.
	OtherPast(read terms.Index) bool
}

// noArchive keeps nothing.
type noArchive struct{}

func (noArchive) Restored(_, _ *cluster.State)          {}
func (noArchive) Folded(journal.Record, *cluster.State) {}
func (noArchive) OtherPast(terms.Index) bool            { return false }

// history is the recent past: the loop writes it, Follow reads it.
type history struct {
	mutex sync.Mutex
	// entries are the last that were folded, the newest at the end.
	entries []report.Folded
	bytes   int
	changed chan struct{}
	// Only the loop touches what follows: the digests that neighbours' are compared with, and what was published last.
	digests.Digests
	published terms.Index
}

func (h *history) init() { h.changed = make(chan struct{}) }

func (h *history) add(f report.Folded) {
	h.Add(f.Index, f.Digest)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.entries = append(h.entries, f)
	h.bytes += f.Bytes
	// The oldest half goes at once, so that the cost of moving is spread over many entries.
	if len(h.entries) > 2*rememberedMax || h.bytes > 2*rememberedBytesMax {
		h.entries = append([]report.Folded(nil), h.entries[len(h.entries)/2:]...)
		h.bytes = 0
		for i := range h.entries {
			h.bytes += h.entries[i].Bytes
		}
	}
}

// wake lets followers look again.
func (h *history) wake() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// forget drops the entries from one on.
func (h *history) forget(from terms.Index) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for len(h.entries) > 0 && h.entries[len(h.entries)-1].Index >= from {
		h.bytes -= h.entries[len(h.entries)-1].Bytes
		h.entries = h.entries[:len(h.entries)-1]
	}
}

// since returns the remembered entries from an index on, and what is closed when there are more.
func (h *history) since(from terms.Index) ([]report.Folded, <-chan struct{}) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	at := len(h.entries)
	for at > 0 && h.entries[at-1].Index >= from {
		at--
	}
	return append([]report.Folded(nil), h.entries[at:]...), h.changed
}

// Remembered calls visit with the entries from index from on that it remembers, until visit returns an error, which it
// returns; nil after the newest.
func (p *Peer) Remembered(_ context.Context, from terms.Index, visit func(*report.Folded) error) error {
	entries, _ := p.history.since(from)
	for i := range entries {
		if err := visit(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// Follow calls visit with every entry that this peer folds from index from on, beginning with the oldest that it
// remembers, until ctx ends or visit returns an error.
func (p *Peer) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	for {
		entries, changed := p.history.since(from)
		for i := range entries {
			if err := visit(&entries[i]); err != nil {
				return err
			}
			from = entries[i].Index + 1
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.stopped:
			return outbox.ErrStopped
		}
	}
}
