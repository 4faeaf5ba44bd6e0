// Package remains keeps what is left of ended tasks, until there is too much of it.
package remains

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Retention says how much of ended tasks an Archive keeps.
type Retention struct {
	// Folders is the largest number of tasks.
	Folders int
	// Bytes is the largest size of all that is kept of them together.
	Bytes int64
}

// Outputs keeps the output of the last thousand tasks, 1 GiB of it at most.
func Outputs() Retention { return Retention{Folders: 1000, Bytes: 1 << 30} }

// Archive keeps folders until there is too much of them; then the oldest go first.
type Archive struct {
	folder    string
	keeps     func(file string) bool
	retention Retention

	mu    sync.Mutex
	kept  []archived // oldest first
	bytes int64
}

type archived struct {
	name  string
	bytes int64
	since time.Time
}

// Open returns the archive in the folder, with what an earlier process left in it. Of what is added it keeps the files
// that keeps wants, and nothing else.
func Open(folder string, retention Retention, keeps func(file string) bool) (*Archive, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	a := &Archive{folder: folder, keeps: keeps, retention: retention}
	for _, entry := range entries {
		one, err := a.strip(entry.Name())
		if err != nil {
			return nil, err
		}
		a.kept = append(a.kept, one)
		a.bytes += one.bytes
	}
	slices.SortStableFunc(a.kept, func(x, y archived) int { return x.since.Compare(y.since) })
	return a, a.prune()
}

// Path is where what has that name is kept, if it is.
func (a *Archive) Path(name string) string { return filepath.Join(a.folder, name) }

// Add moves a folder into the archive. When it returns an error and the folder is gone, it is kept.
func (a *Archive) Add(folder string) error {
	name := filepath.Base(folder)
	if err := a.drop(name); err != nil {
		return err
	}
	if err := os.Rename(folder, a.Path(name)); err != nil {
		return err
	}
	now := time.Now()
	err := os.Chtimes(a.Path(name), now, now)
	one, stripped := a.strip(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, one)
	a.bytes += one.bytes
	return errors.Join(err, stripped, a.prune())
}

// drop deletes what is kept under a name, lest a second folder of that name find its place taken.
func (a *Archive) drop(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.kept, func(one archived) bool { return one.name == name })
	if i < 0 {
		return nil
	}
	a.bytes -= a.kept[i].bytes
	a.kept = slices.Delete(a.kept, i, i+1)
	return os.RemoveAll(a.Path(name))
}

// strip deletes what is not to be kept from an archived folder, leaves its age as it was, and weighs the rest.
func (a *Archive) strip(name string) (archived, error) {
	one := archived{name: name}
	info, err := os.Stat(a.Path(name))
	if err != nil {
		return one, err
	}
	one.since = info.ModTime()
	entries, err := os.ReadDir(a.Path(name))
	for _, entry := range entries {
		if !a.keeps(entry.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(a.Path(name), entry.Name())))
		} else if info, failed := entry.Info(); failed == nil {
			one.bytes += info.Size()
		}
	}
	return one, errors.Join(err, os.Chtimes(a.Path(name), one.since, one.since))
}

// prune deletes the oldest until the rest is within the bounds.
func (a *Archive) prune() error {
	for len(a.kept) > 0 && (len(a.kept) > a.retention.Folders || a.bytes > a.retention.Bytes) {
		if err := os.RemoveAll(a.Path(a.kept[0].name)); err != nil {
			return err
		}
		a.bytes -= a.kept[0].bytes
		a.kept = a.kept[1:]
	}
	return nil
}
