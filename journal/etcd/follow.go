package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"starling/journal"
)

const (
	// pauseMin and pauseMax bound the wait before a reader tries an engine again that just failed it.
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
)

// Reasons for which a reader stops watching and goes on otherwise.
var (
	errRescan      = errors.New("what was not yet read must be listed")
	errInterrupted = errors.New("the watch has ended")
)

// errDamaged ends a Follow: no reading again can mend what the engine holds.
var errDamaged = errors.New("this is not the whole journal; was the engine restored from a backup, replaced, or written to by others? Bring back what it held, or begin a cluster from a backup: starling restore FILE")

// deliverError is an error of the caller's deliver, which Follow returns as it is.
type deliverError struct{ error }

// reader is one Follow. It knows the last record that it has passed on.
type reader struct {
	journal *Journal
	from    journal.Index // what lies before is counted, but not delivered
	last    position
	lastKey string // of that record, "" if it was not read here
	trimmed cut    // as it was when the last scan began
	sealed  bool
	deliver func([]journal.Record) error
	writers map[string]string // one string per writer, whatever the number of records
}

// Follow implements journal.Journal.
func (j *Journal) Follow(ctx context.Context, from journal.Index, deliver func([]journal.Record) error) error {
	during, done := j.during(ctx, 0)
	defer done()
	r := &reader{journal: j, from: from, deliver: deliver, writers: make(map[string]string)}
	err := r.run(during)
	if over := j.over(ctx); over != nil {
		return over
	}
	if refused, ok := errors.AsType[deliverError](err); ok {
		return refused.error
	}
	return fmt.Errorf("follow journal in %s: %w", j.client.where(), err)
}

// run reads and watches until ctx ends, deliver fails, or the engine turns out to be another.
func (r *reader) run(ctx context.Context) error {
	scanned, pause := false, pauseMin
	for {
		var err error
		before := r.last
		if !scanned {
			err = r.scan(ctx)
			scanned = err == nil
			if scanned && r.sealed {
				return journal.ErrSealed
			}
		} else {
			err = r.watch(ctx)
			scanned = !errors.Is(err, errRescan)
		}
		if refused, ok := errors.AsType[deliverError](err); ok {
			return refused
		}
		if errors.Is(err, errDamaged) || errors.Is(err, journal.ErrTrimmed) || ctx.Err() != nil {
			return err
		}
		if err == nil || r.last != before {
			pause = pauseMin
			continue
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, pauseMax)
	}
}

// pass delivers records that follow the last, less those before from, and moves on to the position of the last of them.
func (r *reader) pass(records []journal.Record, last position) error {
	if n := len(records); n > 0 {
		r.lastKey = r.journal.keys.record(records[n-1].Writer, records[n-1].Seq)
	} else if last != r.last {
		r.lastKey = ""
	}
	skipped := 0
	for skipped < len(records) && records[skipped].Index < r.from {
		skipped++
	}
	if records = records[skipped:]; len(records) > 0 {
		if err := r.deliver(records); err != nil {
			return deliverError{err}
		}
	}
	r.last = last
	return nil
}

// record returns the record that the engine keeps under key.
func (r *reader) record(key, payload []byte, index journal.Index) (journal.Record, error) {
	name, seq, err := r.journal.keys.identity(key)
	if err != nil {
		return journal.Record{}, err
	}
	writer, known := r.writers[string(name)]
	if !known {
		writer = string(name)
		r.writers[writer] = writer
	}
	return journal.Record{Index: index, Writer: writer, Seq: seq, Payload: payload}, nil
}

// wait returns nil after some time, or ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
