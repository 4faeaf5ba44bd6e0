package archive

import (
	"context"
	"errors"
	"os"
	"sort"

	"starling/cluster"
	"starling/cluster/snapshot"
	"starling/journal"
	"starling/replica/replay"
	"starling/replica/report"
	"starling/terms"
)

// Parting is where a past parts from another one, or from what its own entries lead to.
type Parting struct {
	// First and Last are the oldest index that was compared and the newest up to which there is no difference.
	First, Last terms.Index
	// Index is the next one that was compared, where the values are not the same; 0 if they are to the end. An entry that
	// parts them is known if it is the next to Last.
	Index terms.Index
	// Kept and Other are the digests there that stand in this past and in the other one, Here is what this program makes
	// of the entry. Altered tells that the two pasts have different entries there.
	Kept, Other, Here uint64
	Altered           bool
	// Folded is what the entry does here; its Index is 0 if no entry is known.
	Folded report.Folded
	// Right and Wrong are two values at the first index from Index on at which both are known: that to which the entries
	// lead, and that which was written down. Nil if none was.
	Right, Wrong *cluster.State
}

// Bisect looks where this past parts from another one, by the digests that were written down with the entries; without
// another it folds the entries anew. Values that part are taken to stay different.
func (a *Archive) Bisect(ctx context.Context, other *Archive) (*Parting, error) {
	if other == nil {
		return a.foldAnew(ctx)
	}
	common := common(a.stretches(), other.stretches())
	if len(common) == 0 {
		return nil, missing("the two pasts have no index in common: take them from the same time")
	}
	var err error
	differs := func(at int) bool {
		index := common.at(at)
		kept, errKept := a.digest(ctx, index)
		others, errOther := other.digest(ctx, index)
		err = errors.Join(err, errKept, errOther)
		return kept != others
	}
	first := sort.Search(common.len(), differs)
	if err != nil {
		return nil, err
	}
	p := &Parting{First: common.at(0), Last: common.at(max(first-1, 0))}
	if first == common.len() {
		return p, errors.Join(a.readAll(ctx), other.readAll(ctx))
	}
	p.Index = common.at(first)
	p.Kept, _ = a.digest(ctx, p.Index) // both were read before
	p.Other, _ = other.digest(ctx, p.Index)
	if first == 0 || p.Index != p.Last+1 {
		return p, nil
	}
	err = a.part(ctx, other, p)
	if hole := (*Missing)(nil); errors.As(err, &hole) {
		err = nil // one of them has the value after the entry, and not the entry
	}
	return p, err
}

// readAll reads all entries: the digests alone do not tell that others are damaged.
func (a *Archive) readAll(ctx context.Context) error {
	for _, s := range a.local() {
		if err := a.scan(ctx, &s, func(Entry) error { return ctx.Err() }); err != nil {
			return err
		}
	}
	return nil
}

// part folds the entry that parts two pasts.
func (a *Archive) part(ctx context.Context, other *Archive, p *Parting) error {
	s, err := a.At(ctx, p.Last)
	if err != nil {
		if s, err = other.At(ctx, p.Last); err != nil {
			return err
		}
	}
	own, err := a.entry(ctx, p.Index)
	if err != nil {
		return err
	}
	others, err := other.entry(ctx, p.Index)
	if err != nil {
		return err
	}
	p.Altered = string(own.Payload) != string(others.Payload)
	p.Right = s.Copy()
	p.Folded = replay.Record(s, own.Payload, true)
	otherwise(s, &p.Folded)
	p.Here = p.Folded.Digest
	switch {
	case p.Altered:
		folded := replay.Record(p.Right, others.Payload, false)
		otherwise(p.Right, &folded)
		p.Wrong = s
		return nil
	case p.Here == p.Kept:
		return other.written(ctx, s, p)
	}
	return a.written(ctx, s, p)
}

// foldAnew folds all entries, from one segment into the next.
func (a *Archive) foldAnew(ctx context.Context) (*Parting, error) {
	var s *cluster.State
	p := &Parting{}
	all := a.local()
	for i := range all {
		one := &all[i]
		wrong, err := a.valueIn(one)
		switch {
		case err != nil:
			return nil, unreadable(one, nil, err)
		case s == nil || s.Index != one.begin.Index:
			s = wrong
		case wrong.Digest() != s.Digest():
			p.Index, p.Kept, p.Here, p.Right, p.Wrong = s.Index, wrong.Digest(), s.Digest(), s, wrong
			return p, nil
		}
		if i == 0 {
			p.First = s.Index
		}
		p.Last = s.Index
		var differs *Differs
		err = a.scan(ctx, one, func(e Entry) error {
			if _, err := fold(s, &e, a.config.Knows, true); err != nil {
				return err
			}
			p.Last = e.Index
			return ctx.Err()
		})
		if errors.As(err, &differs) {
			p.Index, p.Kept, p.Here, p.Folded = differs.Index, differs.Want, differs.Got, differs.Folded
			return p, a.written(ctx, s, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// written folds on from the right value to the next index at which this past has the value itself.
func (a *Archive) written(ctx context.Context, right *cluster.State, p *Parting) error {
	p.Right, p.Wrong = nil, nil
	all := a.local()
	next := sort.Search(len(all), func(i int) bool { return all[i].begin.Index >= right.Index })
	if next == len(all) {
		return nil
	}
	err := a.entries(ctx, right.Index, all[next].begin.Index, func(e Entry) error {
		folded := replay.Record(right, e.Record.Payload, false)
		otherwise(right, &folded)
		return nil
	})
	if hole := (*Missing)(nil); errors.As(err, &hole) {
		return nil
	}
	if err == nil {
		p.Right = right
		p.Wrong, err = a.valueIn(&all[next])
	}
	return err
}

// valueIn returns the value with which a segment begins, whatever its digest should be.
func (a *Archive) valueIn(s *segment) (*cluster.State, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := NewReader(f)
	if err != nil {
		return nil, err
	}
	all, err := snapshot.Decode(r.value, a.config.Knows)
	if err != nil {
		return nil, err
	}
	return cluster.Rebuild(all), nil
}

// digest returns the digest that stands at an index.
func (a *Archive) digest(ctx context.Context, index terms.Index) (uint64, error) {
	s, err := segmentOf(a.local(), index)
	if err != nil {
		return 0, err
	}
	return a.digestIn(ctx, &s, index)
}

// digestIn returns the digest that stands at an index of a segment.
func (a *Archive) digestIn(ctx context.Context, s *segment, index terms.Index) (uint64, error) {
	last := s.begin
	err := a.scan(ctx, s, func(e Entry) error {
		if e.Index > index {
			return errSeen
		}
		last = e.Moment
		return nil
	})
	return last.Digest, err
}

// entry returns the entry at an index.
func (a *Archive) entry(ctx context.Context, index terms.Index) (r journal.Record, err error) {
	err = a.entries(ctx, index-1, index, func(e Entry) error {
		r = e.Record
		return nil
	})
	return r, err
}

// stretch is from one index to another, both included, without a hole.
type stretch struct{ first, last terms.Index }

// stretches are in their order, and have none in common.
type stretches []stretch

// stretches returns of which indexes the archive has the values.
func (a *Archive) stretches() (all stretches) {
	for _, s := range a.local() {
		if n := len(all); n > 0 && s.begin.Index <= all[n-1].last+1 {
			all[n-1].last = max(all[n-1].last, s.end.Index)
			continue
		}
		all = append(all, stretch{s.begin.Index, s.end.Index})
	}
	return all
}

// common returns what two have in common.
func common(a, b stretches) (both stretches) {
	for _, x := range a {
		for _, y := range b {
			if first, last := max(x.first, y.first), min(x.last, y.last); first <= last {
				both = append(both, stretch{first, last})
			}
		}
	}
	return both
}

func (all stretches) len() (n int) {
	for _, s := range all {
		n += int(s.last-s.first) + 1
	}
	return n
}

// at returns the index that has so many before it.
func (all stretches) at(n int) terms.Index {
	for _, s := range all {
		if length := int(s.last-s.first) + 1; n >= length {
			n -= length
			continue
		}
		return s.first + terms.Index(n)
	}
	panic("behind the end of all stretches")
}
