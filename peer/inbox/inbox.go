// Package inbox reads a journal for whoever folds it: the records, and the snapshot that stands for those that are not
// there any more.
package inbox

import (
	"bytes"
	"context"
	"errors"
	"time"

	"starling/cluster/facts"
	"starling/journal"
	"starling/terms"
)

// Delivery is what is to be folded next: records, or a snapshot with its data.
type Delivery struct {
	Records  []journal.Record
	Snapshot journal.Snapshot
	Data     []byte
}

// snapshotPause is how long to wait before a snapshot that could not be read is looked for again.
const snapshotPause = time.Second

// Follow delivers the journal from an index on, until ctx ends or deliver returns an error.
func Follow(ctx context.Context, j journal.Journal, next journal.Index, deliver func(Delivery) error) error {
	for {
		err := j.Follow(ctx, next, func(records []journal.Record) error {
			next = records[len(records)-1].Index + 1
			return deliver(Delivery{Records: records})
		})
		if !errors.Is(err, journal.ErrTrimmed) {
			return err
		}
		d, err := standing(ctx, j)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // another may stand by now, or the engine does not answer
			Pause(ctx, snapshotPause)
			continue
		}
		if err := deliver(d); err != nil {
			return err
		}
		next = d.Snapshot.Index + 1
	}
}

// standing reads the snapshot that stands.
func standing(ctx context.Context, j journal.Journal) (d Delivery, err error) {
	if d.Snapshot, err = j.Snapshot(ctx); err == nil {
		d.Data, err = Chunks(ctx, j, d.Snapshot)
	}
	return d, err
}

// Chunks returns the chunks of a snapshot, one after the other.
func Chunks(ctx context.Context, j journal.Journal, s journal.Snapshot) ([]byte, error) {
	var data bytes.Buffer
	for number := range s.Chunks {
		chunk, err := j.Chunk(ctx, s, number)
		if err != nil {
			return nil, err
		}
		data.Write(chunk)
	}
	return data.Bytes(), nil
}

// Put keeps the chunks with the journal, except those that are there: whoever comes late touches nothing that others
// have found good.
func Put(ctx context.Context, j journal.Journal, s journal.Snapshot, chunks [][]byte) error {
	for number, chunk := range chunks {
		there, err := j.Chunk(ctx, s, uint32(number))
		if err == nil && bytes.Equal(there, chunk) {
			continue
		}
		if err == nil || errors.Is(err, journal.ErrNoChunk) {
			err = j.PutChunk(ctx, s, uint32(number), chunk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Named is a snapshot as the value names it, but for its digest, which the journal does not know.
func Named(s journal.Snapshot) facts.Snapshot {
	return facts.Snapshot{Index: terms.Index(s.Index), Chunks: s.Chunks, Sum: s.Sum}
}

// Kept is the snapshot as the journal names it.
func Kept(s facts.Snapshot) journal.Snapshot {
	return journal.Snapshot{Index: journal.Index(s.Index), Chunks: s.Chunks, Sum: s.Sum}
}

// Pause waits for d or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
