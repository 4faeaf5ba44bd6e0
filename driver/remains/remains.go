// Package remains keeps what is left of ended tasks, until there is too much of it. Then the pool of which most is kept
// loses its oldest, so that none takes the place of others.
package remains

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/driver/disk"
)

// Retention says how much of ended tasks an Archive keeps.
type Retention struct {
	// Folders is the largest number of tasks.
	Folders int
	// Bytes is the largest size of all that is kept of them together.
	Bytes int64
	// OfGroup is the largest number of those whose names are the same up to their first dot; zero means any number.
	OfGroup int
}

// Outputs keeps the output of a thousand tasks, 1 GiB of it at most.
func Outputs() Retention { return Retention{Folders: 1000, Bytes: 1 << 30} }

// Folders keeps what fifty tasks worked in, the last three of a group and 4 GiB at most.
func Folders() Retention { return Retention{Folders: 50, Bytes: 4 << 30, OfGroup: 3} }

// Archive keeps folders until there is too much of them.
type Archive struct {
	folder    string
	keeps     func(file string) bool
	retention Retention

	undeleted error
	// dooms has a value when something waits for Clear.
	dooms chan struct{}

	mu    sync.Mutex
	kept  []archived // oldest first
	bytes int64
}

// archived is one of the folders. What it takes is found by Watch if there are folders in it.
type archived struct {
	name    string
	pool    string
	bytes   int64
	weighed bool
	since   time.Time
}

// group is what the folder is counted with.
func (a archived) group() string {
	group, _, _ := strings.Cut(a.name, ".")
	return group
}

// poolOf is the pool of the task that a folder is of, as its escaped name has it before that of the job: empty for the
// pool that is not named, and as far as it goes of a name that was shortened.
func poolOf(name string) string {
	group, _, _ := strings.Cut(archived{name: name}.group(), "~")
	return group[:max(0, strings.LastIndex(group, "%2f"))]
}

// Open returns the archive in the folder, with what an earlier process left in it. Of what is added it keeps the files
// that keeps wants, and nothing else; nil means all. What cannot be deleted stays (see Undeleted).
func Open(folder string, retention Retention, keeps func(file string) bool) (*Archive, error) {
	if err := os.MkdirAll(filepath.Join(folder, doomedFolder), 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	a := &Archive{folder: folder, keeps: keeps, retention: retention, dooms: make(chan struct{}, 1)}
	for _, entry := range entries {
		if entry.Name() == doomedFolder {
			continue
		}
		one, err := a.strip(entry.Name())
		a.undeleted = errors.Join(a.undeleted, err)
		a.kept = append(a.kept, one)
		a.bytes += one.bytes
	}
	slices.SortStableFunc(a.kept, func(x, y archived) int { return x.since.Compare(y.since) })
	a.undeleted = errors.Join(a.undeleted, a.prune())
	return a, nil
}

// Undeleted is why Open could not delete what it should have, nil if it could.
func (a *Archive) Undeleted() error {
	if a.undeleted == nil {
		return nil
	}
	return fmt.Errorf("delete what an earlier agent left of ended tasks: %w", a.undeleted)
}

// Path is where what has that name is kept, if it is.
func (a *Archive) Path(name string) string { return filepath.Join(a.folder, name) }

// Add moves a folder into the archive, under a name. When it returns an error and the folder is gone, it is kept.
func (a *Archive) Add(folder, name string) error {
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
	return a.delete(i)
}

// strip deletes what is not to be kept from an archived folder, leaves its age as it was, and weighs the rest.
func (a *Archive) strip(name string) (archived, error) {
	one := archived{name: name, pool: poolOf(name)}
	info, err := os.Stat(a.Path(name))
	if err != nil {
		return one, err
	}
	one.since = info.ModTime()
	if a.keeps == nil {
		return one, nil
	}
	one.weighed = true
	entries, err := os.ReadDir(a.Path(name))
	for _, entry := range entries {
		if !a.keeps(entry.Name()) {
			err = errors.Join(err, a.remove(filepath.Join(a.Path(name), entry.Name())))
		} else if info, failed := entry.Info(); failed == nil {
			one.bytes += info.Size()
		}
	}
	return one, errors.Join(err, os.Chtimes(a.Path(name), one.since, one.since))
}

// prune deletes folders until the rest is within the bounds.
func (a *Archive) prune() error {
	if a.retention.OfGroup > 0 {
		counted := map[string]int{}
		for i, one := range slices.Backward(a.kept) {
			if counted[one.group()]++; counted[one.group()] > a.retention.OfGroup {
				if err := a.delete(i); err != nil {
					return err
				}
			}
		}
	}
	for len(a.kept) > a.retention.Folders {
		if err := a.delete(a.next(func(archived) int64 { return 1 })); err != nil {
			return err
		}
	}
	for len(a.kept) > 0 && a.bytes > a.retention.Bytes {
		if err := a.delete(a.next(bytesOf)); err != nil {
			return err
		}
	}
	return nil
}

// next returns the folder that goes next: the oldest of the pool that has most in a measure, of several such pools the
// oldest of all.
func (a *Archive) next(measure func(archived) int64) int {
	sums, most := map[string]int64{}, int64(0)
	for _, one := range a.kept {
		sums[one.pool] += measure(one)
		most = max(most, sums[one.pool])
	}
	return slices.IndexFunc(a.kept, func(one archived) bool { return sums[one.pool] == most })
}

func bytesOf(a archived) int64 { return a.bytes }

func (a *Archive) delete(i int) error {
	if err := a.remove(a.Path(a.kept[i].name)); err != nil {
		return err
	}
	a.bytes -= a.kept[i].bytes
	a.kept = slices.Delete(a.kept, i, i+1)
	return nil
}

// doomedFolder holds what is to be deleted; no escaped name is like it.
const doomedFolder = ".doomed"

// remove deletes what is at a path, or has Clear delete it if it is a folder with something in it: that can take its
// time. While the disk has little room it is deleted at once.
func (a *Archive) remove(path string) error {
	if err := os.Remove(path); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if room, err := disk.RoomOf(a.folder); err != nil || room.Tight() {
		return disk.RemoveAll(path)
	}
	doomed, err := os.MkdirTemp(a.Path(doomedFolder), "")
	if err == nil {
		err = os.Rename(path, filepath.Join(doomed, filepath.Base(path)))
	}
	if err != nil {
		return disk.RemoveAll(path)
	}
	select {
	case a.dooms <- struct{}{}:
	default:
	}
	return nil
}

// Clear deletes what is to be deleted, also what an earlier process left, until ctx ends. It tells once what it cannot.
func (a *Archive) Clear(ctx context.Context, warn func(error)) {
	told := map[string]bool{}
	for {
		entries, err := os.ReadDir(a.Path(doomedFolder))
		if err != nil {
			warn(err)
		}
		for _, entry := range entries {
			if ctx.Err() != nil {
				return
			}
			if err := disk.RemoveAll(filepath.Join(a.Path(doomedFolder), entry.Name())); err != nil && !told[entry.Name()] {
				told[entry.Name()] = true
				warn(fmt.Errorf("delete what is left of ended tasks: %w", err))
			}
		}
		select {
		case <-a.dooms:
		case <-ctx.Done():
			return
		}
	}
}

// lookEvery is the pause between two looks at the disk.
const lookEvery = time.Second

// Watch finds how much the folders take, and deletes some while the disk has little room, until ctx ends.
func (a *Archive) Watch(ctx context.Context, warn func(error)) {
	for {
		err := a.weigh(ctx)
		if err == nil {
			err = a.makeRoom()
		}
		if err != nil {
			warn(fmt.Errorf("keep what is left of ended tasks within its bounds: %w", err))
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// weigh finds what the folders take of which that is not known. One that cannot be weighed goes.
func (a *Archive) weigh(ctx context.Context) error {
	for {
		a.mu.Lock()
		i := slices.IndexFunc(a.kept, func(one archived) bool { return !one.weighed })
		if i < 0 {
			a.mu.Unlock()
			return nil
		}
		name := a.kept[i].name
		a.mu.Unlock()
		bytes, err := disk.BytesUpTo(ctx, a.Path(name), a.retention.Bytes)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			bytes = a.retention.Bytes + 1
		}
		if err := a.noteBytes(name, bytes); err != nil {
			return err
		}
	}
}

func (a *Archive) noteBytes(name string, bytes int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.kept, func(one archived) bool { return one.name == name })
	if i < 0 {
		return nil
	}
	a.kept[i].bytes, a.kept[i].weighed = bytes, true
	a.bytes += bytes
	if bytes > a.retention.Bytes { // the others need not go for it
		return a.delete(i)
	}
	return a.prune()
}

// makeRoom deletes folders until the disk has room.
func (a *Archive) makeRoom() error {
	for {
		room, err := disk.RoomOf(a.folder)
		if err != nil || !room.Tight() { // a disk that tells nothing is left as it is
			return nil
		}
		a.mu.Lock()
		if len(a.kept) == 0 {
			a.mu.Unlock()
			return nil
		}
		err = a.delete(a.next(bytesOf))
		a.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
