package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/go-zookeeper/zk"

	"starling/journal"
)

const (
	// fetchBytes is what one fetch aims at, judging from the one before.
	fetchBytes = 4 << 20
	// fetchFirst is how many records are fetched at once before their size is known.
	fetchFirst = 8
)

// errMoved tells a reader to find its place again.
var errMoved = errors.New("the shard is gone")

// deliverError is an error of the caller's deliver, which Follow returns as it is.
type deliverError struct{ error }

// reader is one Follow. It knows the last record that it has passed on.
type reader struct {
	journal *Journal
	from    journal.Index // what lies before is counted, but not delivered
	last    journal.Index // 0 before the first place was found
	deliver func([]journal.Record) error
	writers map[string]string // one string per writer, whatever the number of records

	placed   bool
	doubted  bool            // since the last place was found, the ensemble looked damaged
	shard    shard           // of the last record, or the next
	sequence int             // of the last record there, -1 if none was read
	listed   []int           // records there that are not read yet, as far as it was necessary to list them
	atOnce   int             // how many records to fetch next
	sealing  <-chan zk.Event // tells when the shard is sealed, or trimmed; nil if nothing does
	coming   <-chan zk.Event // tells when the next record comes, as far as its name can be guessed; nil if nothing does
}

// Follow implements journal.Journal.
func (j *Journal) Follow(ctx context.Context, from journal.Index, deliver func([]journal.Record) error) error {
	if over := j.over(ctx); over != nil {
		return over
	}
	during, done := j.during(ctx, 0)
	defer done()
	r := &reader{journal: j, from: max(from, 1), deliver: deliver, writers: make(map[string]string), atOnce: fetchFirst}
	err := r.run(during)
	if over := j.over(ctx); over != nil {
		return over
	}
	if refused, ok := errors.AsType[deliverError](err); ok {
		return refused.error
	}
	return fmt.Errorf("follow journal in %s: %w", j.where, remedied(err))
}

// run reads until ctx ends, deliver fails, or the ensemble turns out to be another.
func (r *reader) run(ctx context.Context) error {
	pause := pauseMin
	for {
		before := r.last
		err := r.read(ctx)
		_, refused := errors.AsType[deliverError](err)
		over := errors.Is(err, journal.ErrTrimmed) || errors.Is(err, journal.ErrSealed) || errors.Is(err, zk.ErrNoAuth)
		if refused || over || ctx.Err() != nil {
			return err
		}
		// A shard that is just being trimmed looks damaged, but then the next place is another.
		damaged := errors.Is(err, errDamaged)
		if damaged && r.doubted {
			return err
		}
		r.placed, r.doubted = false, damaged
		if r.last != before {
			pause = pauseMin
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, pauseMax)
	}
}

// read passes on records as they come, until something is not as it thought.
func (r *reader) read(ctx context.Context) error {
	if !r.placed {
		if err := r.place(ctx); err != nil {
			return err
		}
	}
	for {
		n, err := r.fetch(ctx)
		if err == nil && n == 0 {
			err = r.wait(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// place finds the shard of the next record, and what is to be read there.
func (r *reader) place(ctx context.Context) error {
	next := max(r.last+1, r.from)
	trimmed, err := r.journal.trimmed(ctx)
	if err != nil {
		return err
	}
	if next <= trimmed.Index {
		return journal.ErrTrimmed
	}
	numbers, err := r.journal.shardNumbers(ctx)
	if err != nil {
		return err
	}
	behind := sort.Search(len(numbers), func(i int) bool {
		s, failed := r.journal.readShard(ctx, numbers[i])
		if failed != nil {
			err = failed
		}
		return failed != nil || s.Base >= next
	})
	if err == nil && behind == 0 {
		err = fmt.Errorf("no shard begins before record %d: %w", next, errDamaged)
	}
	if err != nil {
		return err
	}
	if r.shard, err = r.journal.readShard(ctx, numbers[behind-1]); err != nil {
		return err
	}
	sequences, err := r.list(ctx)
	if err != nil {
		return err
	}
	skip := min(next-r.shard.Base-1, journal.Index(len(sequences)))
	if at := r.shard.Base + skip; at < r.last {
		return fmt.Errorf("%d records were read, it has %d: %w", r.last, at, errDamaged)
	}
	r.sequence, r.listed = -1, sequences[skip:]
	if skip > 0 {
		r.sequence = sequences[skip-1]
	}
	r.last, r.placed, r.sealing = r.shard.Base+skip, true, nil
	r.doubted, r.coming = false, nil
	return nil
}

// list returns the sequence numbers of all records of the shard.
func (r *reader) list(ctx context.Context) ([]int, error) {
	return current(ctx, r.journal, func(c *zk.Conn) ([]int, error) {
		names, stat, err := c.Children(r.journal.paths.records(r.shard.number))
		if err != nil {
			return nil, err
		}
		sequences := make([]int, len(names))
		for i, name := range names {
			if sequences[i], err = sequenceOf(name); err != nil {
				return nil, err
			}
		}
		slices.Sort(sequences)
		return sequences, whole(r.shard.number, stat)
	})
}

// fetch reads the next records, those that were listed or those whose names can be guessed, and passes them on. It
// returns how many there were.
func (r *reader) fetch(ctx context.Context) (int, error) {
	guessed := len(r.listed) == 0
	sequences := r.listed[:min(r.atOnce, len(r.listed))]
	if guessed {
		for i := range min(r.atOnce, max(1, r.journal.shardRecords-r.sequence-1)) {
			sequences = append(sequences, r.sequence+1+i)
		}
	}
	number := r.shard.number
	records, err := all(ctx, r.journal, len(sequences), func(c *zk.Conn, i int) (journal.Record, error) {
		return r.journal.readRecord(c, number, sequences[i])
	})
	n, bytes := 0, 0
	for n < len(records) && records[n].Writer != "" {
		bytes += len(records[n].Payload)
		n++
	}
	if err != nil && !(guessed && errors.Is(err, zk.ErrNoNode)) {
		if errors.Is(err, zk.ErrNoNode) {
			err = errMoved
		}
		return 0, err
	}
	if n == 0 {
		r.atOnce = 1
		return 0, nil
	}
	r.atOnce = min(max(fetchBytes/(bytes/n+1), 1), 2*n, atOnceMax)
	if !guessed {
		r.listed = r.listed[n:]
	}
	r.sequence, r.coming = sequences[n-1], nil
	return n, r.pass(records[:n])
}

// pass delivers the records that follow the last, less those before from.
func (r *reader) pass(records []journal.Record) error {
	for i := range records {
		r.last++
		records[i].Index = r.last
		writer, known := r.writers[records[i].Writer]
		if !known {
			writer = records[i].Writer
			r.writers[writer] = writer
		}
		records[i].Writer = writer
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
	return nil
}

// wait returns when there may be more to read.
func (r *reader) wait(ctx context.Context) error {
	if r.sealing == nil {
		n, err := r.journal.look(ctx, r.journal.paths.shard(r.shard.number))
		if err != nil {
			return err
		}
		r.sealing = n.changed
		// What was sealed before is seen at once.
		if s, err := decodeShard(r.shard.number, n.data); n.stat == nil || err != nil || s.Sealed {
			return r.compare(ctx)
		}
	}
	if r.coming == nil {
		if exists, err := r.await(ctx); err != nil || exists {
			return err
		}
	}
	timer := time.NewTimer(r.journal.checkEvery)
	defer timer.Stop()
	select {
	case e := <-r.coming:
		r.coming = nil
		if e.Type == zk.EventNodeCreated {
			return nil
		}
	case <-r.sealing:
		r.sealing = nil
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.compare(ctx)
}

// await watches for the record after the last, unless that is there.
func (r *reader) await(ctx context.Context) (exists bool, err error) {
	s, err := r.journal.session(ctx)
	if err != nil {
		return false, err
	}
	type answer struct {
		exists bool
		coming <-chan zk.Event
	}
	got, err := answered(ctx, s, func(c *zk.Conn) (answer, error) {
		exists, _, coming, err := c.ExistsW(r.journal.paths.record(r.shard.number, r.sequence+1))
		return answer{exists, coming}, err
	})
	if err == nil && !got.exists {
		r.coming = got.coming
	}
	return got.exists, err
}

// compare compares how many records were read of the shard with how many there are, and goes on to the next shard after
// the last.
func (r *reader) compare(ctx context.Context) error {
	count := 0
	now, err := synced(ctx, r.journal, func(c *zk.Conn) (shard, error) {
		s, err := r.journal.shardNode(c, r.shard.number)
		if err != nil {
			return s, err
		}
		_, stat, err := c.Get(r.journal.paths.records(s.number))
		if err != nil {
			return s, err
		}
		count = int(stat.NumChildren)
		return s, nil
	})
	switch read := int(r.last - r.shard.Base); {
	case errors.Is(err, zk.ErrNoNode):
		return errMoved
	case err != nil:
		return err
	case count < read:
		return r.behind(ctx, count, read)
	case count > read:
		return r.missed(ctx, read)
	case now.To != "":
		return journal.ErrSealed
	case now.Sealed:
		return r.goOn(ctx, now)
	}
	return nil
}

// behind tells whether the records that were read are gone, or whether a server did not know of them yet.
func (r *reader) behind(ctx context.Context, count, read int) error {
	all, err := r.list(ctx)
	if err == nil && len(all) < read {
		err = fmt.Errorf("shard %d had %d records, it has %d: %w", r.shard.number, read, count, errDamaged)
	}
	return err
}

// missed lists what could not be guessed, if it is so: the ensemble may have left out a number.
func (r *reader) missed(ctx context.Context, read int) error {
	all, err := r.list(ctx)
	if err != nil {
		return err
	}
	if len(all) < read || read > 0 && all[read-1] != r.sequence {
		return fmt.Errorf("record %d has moved: %w", r.last, errDamaged)
	}
	r.listed = all[read:]
	return nil
}

// goOn goes on to the next shard.
func (r *reader) goOn(ctx context.Context, sealed shard) error {
	next, err := r.journal.after(ctx, sealed)
	if errors.Is(err, zk.ErrNoNode) {
		return errMoved
	}
	if err != nil {
		return err
	}
	if next.Base != r.last { // a journal that began with a snapshot, or another one
		return errMoved
	}
	r.shard, r.sequence, r.listed, r.sealing, r.coming = next, -1, nil, nil, nil
	return nil
}
