package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"starling/api/wire"
	"starling/archive"
	"starling/cluster"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/peer"
	"starling/replica/report"
	"starling/terms"
)

// Replayed is a file of which the entries were folded.
type Replayed struct {
	// First is the index with which it begins.
	First terms.Index
	// State is the value in the end.
	State *cluster.State
	// Open tells that it is a segment of an archive without an end: its agent writes to it, or was stopped there.
	Open bool
}

// Replay folds the entries of a file, up to an index if that is not 0.
func Replay(path string, to terms.Index, visit func(*cluster.State, *report.Folded) error) (Replayed, error) {
	f, err := os.Open(path)
	if err != nil {
		return Replayed{}, exit.Fail(exit.Usage, "%w", err)
	}
	defer f.Close()
	return ReplayOpen(f, path, to, visit)
}

// ReplayOpen is Replay of a file that is open, and is told by a name.
func ReplayOpen(f *os.File, path string, to terms.Index,
	visit func(*cluster.State, *report.Folded) error) (all Replayed, err error) {
	if all.First, err = beginOf(f); err != nil {
		return all, badFile(path, nil, err)
	}
	if to != 0 && to < all.First {
		return all, exit.Fail(exit.Usage, "%s begins with the value at index %d: choose a later one than %d", path, all.First, to)
	}
	all.State, err = archive.Replay(f, peer.RulesNewest, to, visit)
	all.Open = errors.Is(err, archive.ErrOpen) && archive.IsSegment(path)
	if err != nil && !all.Open {
		return all, badFile(path, all.State, err)
	}
	if all.State.Index < to {
		return all, exit.Fail(exit.Usage, "%s ends with index %d: it does not have %d", path, all.State.Index, to)
	}
	return all, nil
}

// Past opens what a peer has kept: a file, or the folder of an archive. It is only read.
func Past(path string) (*archive.Archive, error) {
	a, err := archive.OpenPast(path, peer.RulesNewest)
	if err != nil {
		return nil, BadPast(path, err)
	}
	return a, nil
}

// BadPast says what is wrong with what a peer has kept, and what to do.
func BadPast(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return exit.Fail(exit.Usage, "%w", err)
	case errors.Is(err, archive.ErrForeign):
		return exit.Fail(exit.Usage, "%s: %w: give the folder of an archive, or a file of \"starling journal export\"", path, err)
	case errors.Is(err, archive.ErrNewer):
		return exit.Fail(exit.Outdated, "%s: %w", path, err)
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrTorn):
		return exit.Fail(exit.Usage, "%w", err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// beginOf returns the index with which a file begins, and goes back to its beginning.
func beginOf(f *os.File) (terms.Index, error) {
	reader, err := archive.NewReader(f)
	if err != nil {
		return 0, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return reader.Begin.Index, err
}

// badFile says what is wrong with a file of which all up to a value could be folded, and what to do.
func badFile(path string, s *cluster.State, err error) error {
	after := "at its beginning"
	if s != nil {
		after = fmt.Sprintf("after entry %d", s.Index)
	}
	var differs *archive.Differs
	switch {
	case errors.Is(err, archive.ErrForeign):
		return exit.Fail(exit.Usage, "%s was not written by starling: give a file of \"starling journal export\"", path)
	case errors.Is(err, archive.ErrTorn):
		return exit.Fail(exit.Usage, "%s stops %s without its end: it is being written, or was cut off; in that case copy it or "+
			"export it again", path, after)
	case errors.Is(err, archive.ErrLonger):
		return exit.Fail(exit.Usage, "%s is not as it was written, %w: copy it or export it again", path, err)
	case errors.Is(err, archive.ErrDamaged):
		return exit.Fail(exit.Usage, "%s is damaged %s: copy it or export it again", path, after)
	case errors.Is(err, archive.ErrNewer):
		return exit.Fail(exit.Outdated, "%s: %w", path, err)
	case errors.As(err, &differs):
		return fmt.Errorf("%s: %w\n%s", path, err, remote.EntryWords(wire.Entry(&differs.Folded)))
	}
	return fmt.Errorf("%s: %w", path, err)
}
