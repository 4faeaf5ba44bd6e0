package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"starling/journal"
)

// chunk is a chunk's place.
type chunk struct {
	at     journal.Index
	sum    [sha256.Size]byte
	number uint32
}

// PutChunk implements journal.Journal.
func (j *Journal) PutChunk(ctx context.Context, s journal.Snapshot, number uint32, data []byte) error {
	if err := j.usable(ctx); err != nil {
		return err
	}
	if err := journal.CheckChunk(s, number, data); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.store.chunks[chunk{s.Index, s.Sum, number}] = slices.Clone(data)
	return nil
}

// Chunk implements journal.Journal.
func (j *Journal) Chunk(ctx context.Context, s journal.Snapshot, number uint32) ([]byte, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	data, ok := j.store.chunks[chunk{s.Index, s.Sum, number}]
	if !ok {
		return nil, fmt.Errorf("chunk %d at %d: %w", number, s.Index, journal.ErrNoChunk)
	}
	return slices.Clone(data), nil
}

// Trim implements journal.Journal.
func (j *Journal) Trim(ctx context.Context, s journal.Snapshot) error {
	if err := j.usable(ctx); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.store.trim(s)
}

// Snapshot implements journal.Journal.
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if err := j.usable(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.store.snapshot, nil
}

func (s *store) trim(next journal.Snapshot) error {
	if next.Index <= s.snapshot.Index {
		return nil
	}
	if s.end() > 0 && next.Index > s.end() {
		return fmt.Errorf("it is of record %d, the last is %d: %w", next.Index, s.end(), journal.ErrAhead)
	}
	for number := range next.Chunks {
		if _, ok := s.chunks[chunk{next.Index, next.Sum, number}]; !ok {
			return fmt.Errorf("chunk %d at %d: %w", number, next.Index, journal.ErrNoChunk)
		}
	}
	n := min(int(next.Index-s.snapshot.Index), len(s.records))
	for _, r := range s.records[:n] {
		delete(s.seen, identity{r.Writer, r.Seq})
	}
	s.records, s.snapshot = slices.Clone(s.records[n:]), next
	for c := range s.chunks {
		if c.at < next.Index {
			delete(s.chunks, c)
		}
	}
	s.wake()
	return nil
}
