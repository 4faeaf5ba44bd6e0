package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/replay"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// Missing is what the archive does not have: the time before it begins, a hole, the future.
type Missing struct {
	Reason string
}

// Error implements error.
func (m *Missing) Error() string { return m.Reason }

// Refusal is what is told to those who asked.
func (m *Missing) Refusal() facts.Refusal {
	return facts.Refusal{Code: facts.NotFound, Reason: m.Reason}
}

func missing(format string, args ...any) error { return &Missing{fmt.Sprintf(format, args...)} }

const (
	// keptMax bounds the values that are kept for the next question.
	keptMax = 3
	// wayMax bounds the values that are kept of the way to one of those, and wayLeast is how many entries lie between
	// two of them at least. They have all in common but what the entries of one segment change. A way with fewer than
	// wayShort is short.
	wayMax, wayLeast, wayShort = 32, 64, 4
	// waysMax bounds the ways of which values are kept.
	waysMax = 8
)

// kept are values that were asked for last, the latest at the end, and some of the last long ways to them, so that
// neither a step back nor one to another stretch and back begins anew each time.
type kept struct {
	mutex  sync.Mutex
	values []cluster.Frozen
	ways   [][]cluster.Frozen
}

func (k *kept) forget() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.values, k.ways = nil, nil
}

func (k *kept) add(value cluster.Frozen) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.values = slices.DeleteFunc(k.values, func(v cluster.Frozen) bool { return v.Index() == value.Index() })
	if k.values = append(k.values, value); len(k.values) > keptMax {
		k.values = slices.Clone(k.values[1:])
	}
}

// pass keeps values of a way. A short one, as from one of these to the next, takes no long one's place.
func (k *kept) pass(way []cluster.Frozen) {
	if len(way) < wayShort {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ways = append(k.ways, way); len(k.ways) > waysMax {
		k.ways = slices.Clone(k.ways[1:])
	}
}

// nearest returns a copy of the latest value from one index to another, nil if there is none.
func (k *kept) nearest(from, to terms.Index) *cluster.State {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var best *cluster.Frozen
	for _, some := range slices.Concat(k.ways, [][]cluster.Frozen{k.values}) {
		for i := range some {
			if v := &some[i]; v.Index() >= from && v.Index() <= to && (best == nil || v.Index() > best.Index()) {
				best = v
			}
		}
	}
	if best == nil {
		return nil
	}
	return best.Copy()
}

// list returns the segments of the folder with all that was kept till now.
func (a *Archive) list() []segment {
	a.flush()
	return a.local()
}

// local returns the segments of the folder.
func (a *Archive) local() []segment {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.segments)
}

// clock writes a time for people.
func clock(t terms.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }

// segmentOf is the function of that name, and tells whether what is missing was folded while nothing is kept.
func (a *Archive) segmentOf(all []segment, index terms.Index) (segment, error) {
	one, err := segmentOf(all, index)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err == nil || a.paused == "" || len(all) == 0 || index > max(a.last.Index, a.passed) {
		return one, err
	}
	end := all[0].end
	for i := range all {
		if all[i].end.Index > end.Index {
			end = all[i].end
		}
	}
	if index <= end.Index {
		return one, err
	}
	return one, missing("the archive of this peer has paused at index %d, of %s (%s): ask another peer", end.Index,
		clock(end.Time), a.paused)
}

// segmentOf returns the segment from which an index is reached: one of the folder if there is one.
func segmentOf(all []segment, index terms.Index) (segment, error) {
	var best, before *segment
	for i := range all {
		s := &all[i]
		if s.begin.Index > index {
			break
		}
		if index <= s.end.Index && (best == nil || best.stored || !s.stored) {
			best = s
		}
		if before == nil || s.end.Index >= before.end.Index {
			before = s
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case len(all) == 0:
		return segment{}, missing("the archive of this peer is empty yet: ask again in a moment, or another peer")
	case before == nil:
		return segment{}, missing("the archive of this peer begins at index %d, of %s: ask for a later one, or another peer",
			all[0].begin.Index, clock(all[0].begin.Time))
	}
	next := slices.IndexFunc(all, func(s segment) bool { return s.begin.Index > index })
	if next < 0 {
		return segment{}, missing("index %d is in the future: the newest that this peer has folded is %d, of %s", index,
			before.end.Index, clock(before.end.Time))
	}
	return segment{}, hole(before.end, all[next].begin)
}

func hole(last, next Moment) error {
	return missing("the archive of this peer has a hole there: it is missing the entries from %d to %d, between %s and %s: "+
		"ask for another time, or another peer", last.Index+1, next.Index-1, clock(last.Time), clock(next.Time))
}

// IndexAt returns the last index of which the value's time is not after a time, 0 if nothing had happened yet. Now
// is the present time.
func (a *Archive) IndexAt(ctx context.Context, at, now time.Time) (terms.Index, error) {
	t := terms.Time(at.UnixMilli())
	if at.After(now) {
		return 0, missing("%s is in the future: it is %s now", clock(t), clock(terms.Time(now.UnixMilli())))
	}
	all, err := a.segmentsSince(ctx, func(m Moment) bool { return m.Time <= t })
	switch {
	case err != nil:
		return 0, err
	case len(all) == 0:
		_, err := segmentOf(all, 0)
		return 0, err
	case all[0].begin.Time > t:
		return 0, missing("the archive of this peer begins at %s, with index %d: ask for a later time, or another peer",
			clock(all[0].begin.Time), all[0].begin.Index)
	}
	var last *segment // of those that begin by then, the one that goes furthest
	next := len(all)
	for i := range all {
		if all[i].begin.Time > t {
			next = i
			break
		}
		if last == nil || all[i].end.Index >= last.end.Index {
			last = &all[i]
		}
	}
	if last.end.Time > t {
		return a.within(ctx, last, t)
	}
	if next < len(all) && all[next].begin.Index > last.end.Index {
		return 0, hole(last.end, all[next].begin)
	}
	return last.end.Index, nil
}

// within returns the last index of a segment of which the time is not after a time.
func (a *Archive) within(ctx context.Context, s *segment, t terms.Time) (terms.Index, error) {
	found := s.begin.Index
	err := a.scan(ctx, s, func(e Entry) error {
		if e.Time > t {
			return errSeen
		}
		found = e.Index
		return nil
	})
	return found, err
}

// errSeen ends a scan.
var errSeen = errors.New("all seen")

// scan visits the records of a segment.
func (a *Archive) scan(ctx context.Context, s *segment, visit func(Entry) error) error {
	f, err := a.open(ctx, s)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	defer f.Close()
	r, err := NewReader(io.LimitReader(f, s.bytes))
	for err == nil && r.Last.Index < s.end.Index {
		var e Entry
		if e, err = r.Next(); err == nil {
			err = visit(e)
		}
	}
	if err != nil && !errors.Is(err, errSeen) {
		return unreadable(s, r, err)
	}
	return nil
}

// unreadable says what to do about a segment that cannot be read, and up to where it was, if that is known.
func unreadable(s *segment, r *Reader, err error) error {
	if errors.Is(err, ErrDamaged) && r != nil {
		err = fmt.Errorf("%w after entry %d", err, r.Last.Index)
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrTorn) {
		return fmt.Errorf("%s of the archive: %w: ask another peer with --address; if you delete it, what it held is a hole "+
			"from the next start of this agent on, unless the store has it", s.path, err)
	}
	return fmt.Errorf("read %s of the archive: %w", s.path, err)
}

// At returns the value at an index, as a copy of the caller's own.
func (a *Archive) At(ctx context.Context, index terms.Index) (*cluster.State, error) {
	all, err := a.segmentsSince(ctx, upTo(index))
	if err != nil {
		return nil, err
	}
	s, err := a.segmentOf(all, index)
	if err != nil {
		return nil, err
	}
	select {
	case a.reading <- struct{}{}:
		defer func() { <-a.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	state := a.kept.nearest(s.begin.Index, index)
	if state == nil || state.Index < index {
		if state, err = a.reach(ctx, &s, state, index); err != nil {
			return nil, err
		}
		a.kept.add(state.Freeze())
	}
	return state, nil
}

// reach folds from a value, nil for that with which the segment begins, to an index of the segment.
func (a *Archive) reach(ctx context.Context, s *segment, from *cluster.State, to terms.Index) (*cluster.State, error) {
	f, err := a.open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer f.Close()
	r, err := NewReader(io.LimitReader(f, s.bytes))
	if err == nil && from == nil {
		from, err = r.Value(a.config.Knows)
	}
	var way []cluster.Frozen
	next, step := terms.Index(0), terms.Index(0)
	if err == nil {
		step = max((to-from.Index)/wayMax, wayLeast)
		next = from.Index + step
	}
	for err == nil && from.Index < to {
		var e Entry
		if e, err = r.Next(); err == nil && e.Index > from.Index {
			_, err = fold(from, &e, a.config.Knows, false)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && from.Index >= next && from.Index < to {
			way, next = append(way, from.Freeze()), from.Index+step
		}
	}
	if err != nil {
		return nil, unreadable(s, r, err)
	}
	a.kept.pass(way)
	return from, nil
}

// Differs tells that this program folds an entry to another value than the one that wrote it down.
type Differs struct {
	Index     terms.Index
	Got, Want uint64
	// Folded is what it does here.
	Folded report.Folded
}

// Error implements error.
func (d *Differs) Error() string {
	return fmt.Sprintf("entry %d leads to digest %016x here, and led to %016x where it was written down: it was altered, or "+
		"this program folds it differently", d.Index, d.Got, d.Want)
}

// fold folds the next entry into a value.
func fold(s *cluster.State, e *Entry, knows rules.Number, explain bool) (report.Folded, error) {
	folded := replay.Record(s, e.Record.Payload, explain)
	otherwise(s, &folded)
	switch {
	case folded.Digest != e.Digest:
		return folded, &Differs{e.Index, folded.Digest, e.Digest, folded}
	case s.Rules > knows:
		return folded, fmt.Errorf("entry %d raises the rules to version %d: %w", e.Index, s.Rules, ErrNewer)
	}
	return folded, nil
}

// Walk folds the entries behind an index up to another, and visits each with what it did and the value after it, which
// is only to be read.
func (a *Archive) Walk(ctx context.Context, from, to terms.Index,
	visit func(*cluster.State, *report.Folded) error) error {
	state, err := a.At(ctx, from)
	if err != nil {
		return err
	}
	return a.entries(ctx, from, to, func(e Entry) error {
		folded, err := fold(state, &e, a.config.Knows, true)
		if err == nil {
			err = visit(state, &folded)
		}
		return err
	})
}

// upTo tells whether an index is not before a moment.
func upTo(index terms.Index) func(Moment) bool {
	return func(m Moment) bool { return m.Index <= index }
}

// entries visits the entries behind an index up to another; there must be no hole between.
func (a *Archive) entries(ctx context.Context, from, to terms.Index, visit func(Entry) error) error {
	all, err := a.segmentsSince(ctx, upTo(from))
	if err != nil {
		return err
	}
	if _, err := a.segmentOf(all, to); err != nil {
		return err
	}
	for from < to {
		s, err := following(all, from)
		if err != nil {
			return err
		}
		end := min(to, s.end.Index)
		err = a.scan(ctx, &s, func(e Entry) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case e.Index > end:
				return errSeen
			case e.Index <= from:
				return nil
			}
			return visit(e)
		})
		if err != nil {
			return err
		}
		from = end
	}
	return nil
}

// following returns the segment that has the entry behind an index: one of the folder if there is one.
func following(all []segment, index terms.Index) (segment, error) {
	var best *segment
	for i := range all {
		s := &all[i]
		if s.begin.Index <= index && s.end.Index > index && (best == nil || best.stored || !s.stored) {
			best = s
		}
	}
	if best != nil {
		return *best, nil
	}
	_, err := segmentOf(all, index+1)
	if err == nil {
		err = missing("the archive of this peer does not have entry %d itself: ask for what comes after it, or another peer",
			index+1)
	}
	return segment{}, err
}

// Oldest returns the oldest index from which all entries up to another are there.
func (a *Archive) Oldest(ctx context.Context, to terms.Index) (terms.Index, error) {
	all, err := a.segmentsSince(ctx, func(Moment) bool { return false })
	if err != nil {
		return 0, err
	}
	s, err := a.segmentOf(all, to)
	if err != nil {
		return 0, err
	}
	oldest := s.begin.Index
	for _, one := range slices.Backward(all) {
		if one.end.Index >= oldest {
			oldest = min(oldest, one.begin.Index)
		}
	}
	return oldest, nil
}

// Generation tells how often all that was kept was put aside. What was read of an earlier one may be of another past.
func (a *Archive) Generation() int64 { return a.generation.Load() }

// Export writes the value at an index and the records behind it up to another, as one segment that is whole.
func (a *Archive) Export(ctx context.Context, from, to terms.Index, w io.Writer) error {
	state, err := a.At(ctx, from)
	if err != nil {
		return err
	}
	last := momentOf(state)
	if _, err := w.Write(begin(state)); err != nil {
		return err
	}
	err = a.entries(ctx, from, to, func(e Entry) error {
		last = e.Moment
		_, err := w.Write(recordFrame(nil, e.Moment, &e.Record))
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(frame(nil, kindEnd, last))
	return err
}

// Write writes a value as one segment that is whole and has no records.
func Write(w io.Writer, s *cluster.State) error {
	_, err := w.Write(append(begin(s), frame(nil, kindEnd, momentOf(s))...))
	return err
}
