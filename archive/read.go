package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// keptMax bounds the values that are kept for the next question.
const keptMax = 3

// kept are values that were asked for last, the latest at the end.
type kept struct {
	mutex  sync.Mutex
	values []cluster.Frozen
}

func (k *kept) forget() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.values = nil
}

func (k *kept) add(value cluster.Frozen) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.values = slices.DeleteFunc(k.values, func(v cluster.Frozen) bool { return v.Index() == value.Index() })
	if k.values = append(k.values, value); len(k.values) > keptMax {
		k.values = slices.Clone(k.values[1:])
	}
}

// nearest returns a copy of the latest value from one index to another, nil if there is none.
func (k *kept) nearest(from, to terms.Index) *cluster.State {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var best *cluster.Frozen
	for i := range k.values {
		if v := &k.values[i]; v.Index() >= from && v.Index() <= to && (best == nil || v.Index() > best.Index()) {
			best = v
		}
	}
	if best == nil {
		return nil
	}
	return best.Copy()
}

// list returns the segments with all that was kept till now.
func (a *Archive) list() []segment {
	a.flush()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.segments)
}

// clock writes a time for people.
func clock(t terms.Time) string { return time.UnixMilli(int64(t)).UTC().Format(time.RFC3339) }

// segmentOf returns the segment from which an index is reached.
func segmentOf(all []segment, index terms.Index) (segment, error) {
	if len(all) == 0 {
		return segment{}, missing("the archive of this peer is empty yet: ask again in a moment, or another peer")
	}
	if first := all[0].begin; index < first.Index {
		return segment{}, missing("the archive of this peer begins at index %d, of %s: ask for a later one, or another peer",
			first.Index, clock(first.Time))
	}
	if last := all[len(all)-1].end; index > last.Index {
		return segment{}, missing("index %d is in the future: the newest that this peer has folded is %d, of %s", index,
			last.Index, clock(last.Time))
	}
	at := len(all) - 1
	for all[at].begin.Index > index {
		at--
	}
	if s := all[at]; index > s.end.Index {
		return segment{}, hole(s.end, all[at+1].begin)
	}
	return all[at], nil
}

func hole(last, next Moment) error {
	return missing("the archive of this peer has a hole there: it is missing the entries from %d to %d, between %s and %s: "+
		"ask for another time, or another peer", last.Index+1, next.Index-1, clock(last.Time), clock(next.Time))
}

// IndexAt returns the last index of which the value's time is not after a time; now is the present time.
func (a *Archive) IndexAt(at, now time.Time) (terms.Index, error) {
	all, t := a.list(), terms.Time(at.UnixMilli())
	if at.After(now) {
		return 0, missing("%s is in the future: it is %s now", clock(t), clock(terms.Time(now.UnixMilli())))
	}
	if len(all) == 0 {
		_, err := segmentOf(all, 0)
		return 0, err
	}
	if first := all[0].begin; first.Time > t {
		return 0, missing("the archive of this peer begins at %s, with index %d: ask for a later time, or another peer",
			clock(first.Time), first.Index)
	}
	at0 := len(all) - 1
	for all[at0].begin.Time > t {
		at0--
	}
	s := all[at0]
	if s.end.Time > t {
		index, err := a.within(&s, t)
		if err == nil && index == 0 {
			err = missing("nothing had happened yet at %s: ask for a later time", clock(t))
		}
		return index, err
	}
	if at0+1 < len(all) && all[at0+1].begin.Index > s.end.Index {
		return 0, hole(s.end, all[at0+1].begin)
	}
	return s.end.Index, nil
}

// within returns the last index of a segment of which the time is not after a time.
func (a *Archive) within(s *segment, t terms.Time) (terms.Index, error) {
	found := s.begin.Index
	err := a.scan(s, func(e Entry) error {
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
func (a *Archive) scan(s *segment, visit func(Entry) error) error {
	f, err := os.Open(s.path)
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
		return fmt.Errorf("read %s of the archive: %w", s.path, err)
	}
	return nil
}

// At returns the value at an index, as a copy of the caller's own.
func (a *Archive) At(ctx context.Context, index terms.Index) (*cluster.State, error) {
	s, err := segmentOf(a.list(), index)
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
	f, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer f.Close()
	r, err := NewReader(io.LimitReader(f, s.bytes))
	if err == nil && from == nil {
		from, err = r.Value(a.config.Knows)
	}
	for err == nil && from.Index < to {
		var e Entry
		if e, err = r.Next(); err == nil && e.Index > from.Index {
			_, err = fold(from, &e, a.config.Knows, false)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of the archive: %w", s.path, err)
	}
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

// entries visits the entries behind an index up to another; there must be no hole between.
func (a *Archive) entries(ctx context.Context, from, to terms.Index, visit func(Entry) error) error {
	all := a.list()
	if _, err := segmentOf(all, to); err != nil {
		return err
	}
	for from < to {
		s, err := segmentOf(all, from+1)
		if err != nil {
			return err
		}
		if s.begin.Index == from+1 { // the entry itself is at the end of the one before
			at := slices.IndexFunc(all, func(o segment) bool { return o.end.Index == from+1 && o.begin.Index <= from })
			if at < 0 {
				return missing("the archive of this peer does not have entry %d itself: ask for what comes after it, or another peer",
					from+1)
			}
			s = all[at]
		}
		end := min(to, s.end.Index)
		err = a.scan(&s, func(e Entry) error {
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

// Oldest returns the oldest index from which all entries up to another are there.
func (a *Archive) Oldest(to terms.Index) (terms.Index, error) {
	all := a.list()
	if _, err := segmentOf(all, to); err != nil {
		return 0, err
	}
	at := len(all) - 1
	for all[at].begin.Index > to {
		at--
	}
	for at > 0 && all[at-1].end.Index == all[at].begin.Index {
		at--
	}
	return all[at].begin.Index, nil
}

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
