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
	"strconv"
	"strings"
	"time"

	"starling/archive/depot"
	"starling/terms"
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
	return fmt.Sprintf("starling-%s-%020d-%020d-%d-%d%s", s.Cluster, one.begin.Index, one.end.Index, one.begin.Time,
		one.end.Time, suffix)
}

// segmentNamed reads a name; ok is false for one that no segment of the cluster has.
func (s *Store) segmentNamed(name string) (one segment, ok bool) {
	rest, ours := strings.CutPrefix(name, "starling-"+s.Cluster+"-")
	rest, whole := strings.CutSuffix(rest, suffix)
	parts := strings.Split(rest, "-")
	if !ours || !whole || len(parts) != 4 {
		return one, false
	}
	var numbers [4]uint64
	for i, part := range parts {
		var err error
		if numbers[i], err = strconv.ParseUint(part, 10, 63); err != nil {
			return one, false
		}
	}
	one = segment{path: name, sealed: true, stored: true}
	one.begin.Index, one.begin.Time = terms.Index(numbers[0]), terms.Time(numbers[2])
	one.end.Index, one.end.Time = terms.Index(numbers[1]), terms.Time(numbers[3])
	return one, one.begin.Index <= one.end.Index
}

// list returns the segments that the store has.
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
