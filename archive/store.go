package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/archive/depot"
)

// Store is where the peers of a cluster keep segments together, so that the past is longer than a machine's disk, and
// is not lost with it. What lies there is deleted by rules of its own.
type Store struct {
	// Depot has the segments, nil if there is no store.
	Depot   depot.Depot
	Cluster string
}

const (
	// carryWithin is the longest time from the end of a segment until it is carried to the store. Each peer draws its own
	// within it, so that most find that another has done it.
	carryWithin = 15 * time.Second
	// waitMax is how many segments may wait for that, however much room they take.
	waitMax = 4
	// carryMax bounds how long that takes.
	carryMax = 10 * time.Minute
	// fetchedDir keeps segments of the store that were asked for, fetchedMax of them.
	fetchedDir = "fetched"
	fetchedMax = 4
)

// nameOf returns the name of a segment in the store: it tells all that a peer needs to know of it.
func (s *Store) nameOf(one *segment) string {
	return fmt.Sprintf("starling-%s-%020d-%020d-%d-%d-%016x-%016x%s", s.Cluster, one.begin.Index, one.end.Index,
		one.begin.Time, one.end.Time, one.begin.Digest, one.end.Digest, suffix)
}

// segmentNamed reads a name; ok is false for one that no segment of the cluster has.
func (s *Store) segmentNamed(name string) (one segment, ok bool) {
	rest, ours := strings.CutPrefix(name, "starling-"+s.Cluster+"-")
	one = segment{path: name, sealed: true, stored: true}
	n, _ := fmt.Sscanf(rest, "%d-%d-%d-%d-%x-%x"+suffix, &one.begin.Index, &one.end.Index, &one.begin.Time, &one.end.Time,
		&one.begin.Digest, &one.end.Digest)
	return one, ours && n == 6 && s.nameOf(&one) == name && one.begin.Index <= one.end.Index
}

// list returns the segments that the store has of the cluster.
func (s *Store) list(ctx context.Context) ([]segment, error) {
	files, err := s.Depot.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, f := range files {
		if one, ok := s.segmentNamed(f.Name); ok {
			one.bytes = f.Bytes
			all = append(all, one)
		}
	}
	return all, nil
}

// ours returns those of some segments of the store that are of this peer's history, and those of which it cannot tell:
// they end before what it has itself, or after it. After a recovery there may be some of an end that was lost.
func (a *Archive) ours(all []segment) (own, unknown []segment) {
	for i := range all {
		one := &all[i]
		a.mutex.Lock()
		strange, known := a.strange[one.path]
		a.mutex.Unlock()
		if !known {
			strange, known = a.isStrange(one)
		}
		if known {
			a.mutex.Lock()
			a.strange[one.path] = strange
			a.mutex.Unlock()
		}
		switch {
		case !known:
			unknown = append(unknown, *one)
		case !strange:
			own = append(own, *one)
		}
	}
	return own, unknown
}

// isStrange compares the end of a segment with what this peer has folded there; known is false if it does not know.
func (a *Archive) isStrange(one *segment) (strange, known bool) {
	a.mutex.Lock()
	digest, known := a.digestAt(one.end.Index)
	a.mutex.Unlock()
	if known {
		return digest != one.end.Digest, true
	}
	for _, s := range a.local() {
		if one.end.Index < s.begin.Index || one.end.Index > s.end.Index {
			continue
		}
		if digest, err := a.digestIn(context.Background(), &s, one.end.Index); err == nil {
			return digest != one.end.Digest, true
		}
	}
	return false, false
}

// joined returns those of some segments of the store that lead to a moment one after the other, and the others that go
// back behind those: where two tell of the same entries, that one counts from which this peer's history follows.
func joined(all []segment, to Moment) (own []segment) {
	first := to
	for at := 0; at >= 0; {
		at = slices.IndexFunc(all, func(s segment) bool {
			return s.end.Index == first.Index && s.end.Digest == first.Digest && s.begin.Index < first.Index
		})
		if at >= 0 {
			own, first = append(own, all[at]), all[at].begin
		}
	}
	for _, s := range all {
		if s.begin.Index < first.Index || s.begin.Index >= to.Index {
			own = append(own, s)
		}
	}
	return own
}

// covered tells whether each index of a segment is reached by others.
func covered(others []segment, one *segment) bool {
	at := one.begin.Index
	for at < one.end.Index {
		further := at
		for i := range others {
			if o := &others[i]; o.begin.Index <= at {
				further = max(further, o.end.Index)
			}
		}
		if further == at {
			return false
		}
		at = further
	}
	return true
}

// carry brings segments that have their end to the store, until ctx ends.
func (a *Archive) carry(ctx context.Context) {
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, carryMax)
		err := a.carryAll(short)
		cancel()
		if ctx.Err() == nil {
			a.tellStore(err)
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(a.config.retry)
		}
		select {
		case <-a.sealed:
		case <-again:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(rand.N(a.config.carryWithin)):
		case <-a.sealed: // another has ended: it is high time
		case <-ctx.Done():
		}
	}
}

// carryAll brings to the store what it lacks of this peer's segments.
func (a *Archive) carryAll(ctx context.Context) error {
	there, err := a.config.Store.list(ctx)
	if err != nil {
		return err
	}
	there, _ = a.ours(there)
	defer a.retain()
	for _, s := range a.local() {
		if !s.sealed {
			continue
		}
		if !covered(there, &s) {
			switch err := a.config.Store.Depot.Put(ctx, a.config.Store.nameOf(&s), s.path); {
			case errors.Is(err, os.ErrNotExist):
				continue // it has been deleted meanwhile
			case err != nil:
				return err
			}
			there = append(there, s)
		}
		a.carriedNow(s.path)
	}
	return nil
}

// carriedNow notes that the store has what a segment has.
func (a *Archive) carriedNow(path string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if at := slices.IndexFunc(a.segments, func(s segment) bool { return s.path == path }); at >= 0 {
		a.segments[at].carried = true
	}
}

// tellStore notes whether segments reach the store.
func (a *Archive) tellStore(err error) {
	text := ""
	if err != nil {
		text = fmt.Sprintf("segments of the archive do not reach the store: %v", err)
		a.config.Log.Error("segments of the archive do not reach the store; trying again", "error", err)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.unstored = text
}

// segmentsSince returns the segments of the folder, and with them those of the store if the folder does not have all
// from a moment on of which since is true.
func (a *Archive) segmentsSince(ctx context.Context, since func(Moment) bool) ([]segment, error) {
	all := a.list()
	if a.config.Store.Depot == nil || len(all) > 0 && since(all[0].begin) && isWhole(all) {
		return all, nil
	}
	stored, err := a.config.Store.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the store for what the archive of this peer does not have: %w", err)
	}
	own, unknown := a.ours(stored)
	stored = append(own, unknown...)
	if len(all) > 0 {
		stored = joined(stored, all[0].begin)
	}
	all = append(all, stored...)
	slices.SortStableFunc(all, func(x, y segment) int { return cmp.Compare(x.begin.Index, y.begin.Index) })
	return all, nil
}

// isWhole tells whether segments have no hole between them.
func isWhole(all []segment) bool {
	for i := 1; i < len(all); i++ {
		if all[i-1].end.Index < all[i].begin.Index {
			return false
		}
	}
	return true
}

// open opens a segment, which is fetched if it lies in the store.
func (a *Archive) open(ctx context.Context, s *segment) (*os.File, error) {
	if !s.stored {
		return os.Open(s.path)
	}
	select {
	case a.fetching <- struct{}{}:
		defer func() { <-a.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	path := filepath.Join(a.config.Dir, fetchedDir, s.path)
	if at := slices.Index(a.fetched, s.path); at >= 0 {
		a.fetched = append(slices.Delete(a.fetched, at, at+1), s.path)
		return os.Open(path)
	}
	if err := a.fetch(ctx, s, path); err != nil {
		return nil, errors.Join(fmt.Errorf("segment %s of the store: %w", s.path, err), os.RemoveAll(path))
	}
	if a.fetched = append(a.fetched, s.path); len(a.fetched) > fetchedMax {
		_ = os.Remove(filepath.Join(a.config.Dir, fetchedDir, a.fetched[0])) // who reads it has it open
		a.fetched = slices.Delete(a.fetched, 0, 1)
	}
	return os.Open(path)
}

// fetch brings a segment from the store, and looks whether it is what its name says.
func (a *Archive) fetch(ctx context.Context, s *segment, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(a.config.Store.Depot.Fetch(ctx, s.path, file), file.Close()); err != nil {
		return err
	}
	got, err := look(path)
	if err != nil {
		return err
	}
	if !got.sealed || got.begin.Index != s.begin.Index || got.end.Index != s.end.Index {
		return fmt.Errorf("%w: it is not what its name says", ErrDamaged)
	}
	return nil
}
