package peer

import (
	"context"
	"sync"

	"starling/replica/report"
	"starling/terms"
)

// Limits of what a peer remembers of the past.
const (
	// rememberedMax bounds the entries that Follow can go back, rememberedBytesMax their encoded size.
	rememberedMax      = 4096
	rememberedBytesMax = 32 << 20
	// digestsMax bounds the digests that neighbours' are compared with.
	digestsMax = 1 << 14
)

// history is the recent past: the loop writes it, Follow reads it.
type history struct {
	mutex sync.Mutex
	// entries are the last that were folded, the newest at the end.
	entries []report.Folded
	bytes   int
	changed chan struct{}
	// digests are those of the last digestsMax entries, by index modulo that; only the loop touches them.
	digests []uint64
	// first and last are the entries between which digests are known.
	first, last terms.Index
	published   terms.Index
}

func (h *history) init() {
	h.changed = make(chan struct{})
	h.digests = make([]uint64, digestsMax)
}

func (h *history) add(f report.Folded) {
	h.digests[f.Index%digestsMax], h.last = f.Digest, f.Index
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

// restart goes on behind entries that were not folded, with the digest after the last of them.
func (h *history) restart(at terms.Index, digest uint64) {
	h.digests[at%digestsMax], h.first, h.last = digest, at, at
}

// knows tells whether the digest at an index is remembered.
func (h *history) knows(index terms.Index) bool {
	return index > 0 && index >= h.first && index <= h.last && index+digestsMax > h.last
}

// differs tells whether a peer published another digest than this one had at the same index.
func (h *history) differs(view report.PulseView) bool {
	return h.knows(view.Index) && h.digests[view.Index%digestsMax] != view.Digest
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
			return ErrStopped
		}
	}
}
