// Package volume keeps folders that outlive tasks.
package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/pack"
	"starling/driver/quota"
	"starling/driver/record"
)

// Volumes lie in folders volumes/<set>/<name> beside that of the tasks. Their names are escaped as those of tasks are.

// What marks a set that is being deleted, and one that is on its way here; no escaped name begins with them.
const (
	deletedPrefix  = ".deleted-"
	incomingPrefix = ".incoming-"
)

// Keeper keeps the volumes of a machine in a folder. It is safe for concurrent use.
type Keeper struct {
	Dir string
	// Warn is told what is wrong with the folder; Arrived is called when a set was received.
	Warn    func(line string)
	Arrived func()
}

// VolumeSets lists the sets of which there are volumes.
func (k *Keeper) VolumeSets() []string {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.Warn(fmt.Sprintf("the volumes cannot be listed: %v", err))
	}
	var sets []string
	for _, entry := range entries {
		if set, err := record.IDOf(filepath.Join(k.Dir, entry.Name())); err == nil {
			sets = append(sets, set)
		}
	}
	slices.Sort(sets)
	return sets
}

// MakeVolume makes a volume if it is missing.
func (k *Keeper) MakeVolume(v driver.Volume) (path string, err error) {
	if path, err = create(k.Dir, v); err != nil {
		return "", fmt.Errorf("make the volume %q of %q: %w", v.Name, v.Set, err)
	}
	giveBack(filepath.Dir(path)) // the limit of a task is not for what the peer writes there
	return path, nil
}

// DeleteVolumes deletes the volumes of a set. First the set is renamed, so that it is gone at once.
func (k *Keeper) DeleteVolumes(set string) error {
	name, err := record.FolderName(set)
	if err != nil {
		return fmt.Errorf("delete volumes: %w", err)
	}
	if err := os.Remove(filepath.Join(k.Dir+keptSuffix, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete the volumes %q: %w", set, err)
	}
	if _, err := os.Lstat(filepath.Join(k.Dir, name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	doomed, err := os.MkdirTemp(k.Dir, deletedPrefix) // what could not be deleted before lies in another
	giveBack(filepath.Join(k.Dir, name))
	if err == nil {
		err = os.Rename(filepath.Join(k.Dir, name), filepath.Join(doomed, name))
	}
	if err == nil || errors.Is(err, os.ErrNotExist) { // somebody else has deleted it meanwhile
		err = disk.RemoveAll(doomed)
	}
	if err != nil {
		return fmt.Errorf("delete the volumes %q: %w", set, err)
	}
	return nil
}

// asideFolder has the volumes that were set aside. It lies with the others, on whatever disk that is; no escaped name
// is as this.
const asideFolder = ".aside"

// SetVolumesAside moves the volumes of a set there, into a folder of their own, and forgets that there were any.
func (k *Keeper) SetVolumesAside(set string) (folder string, err error) {
	name, err := record.FolderName(set)
	if err == nil {
		folder, err = k.setAside(name)
	}
	if err != nil {
		return "", fmt.Errorf("set the volumes %q aside: %w", set, err)
	}
	k.WarnOfAside()
	return folder, nil
}

func (k *Keeper) setAside(name string) (folder string, err error) {
	if err := os.Remove(filepath.Join(k.Dir+keptSuffix, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	aside := filepath.Join(k.Dir, asideFolder)
	if err = os.MkdirAll(aside, 0o700); err == nil {
		folder, err = os.MkdirTemp(aside, name+"-")
	}
	if err != nil {
		return "", err
	}
	giveBack(filepath.Join(k.Dir, name))
	err = syscall.Rename(filepath.Join(k.Dir, name), folder) // that of package os wants no folder there
	if err != nil {
		_ = os.Remove(folder)
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return folder, err
}

// WarnOfAside tells of volumes that were set aside, if there are any.
func (k *Keeper) WarnOfAside() {
	aside := filepath.Join(k.Dir, asideFolder)
	if some, err := os.ReadDir(aside); err == nil && len(some) > 0 {
		k.Warn(fmt.Sprintf("volumes that the journal knows nothing of, because it has lost its end, are in %s: "+
			"take from there what you need, and delete the folder", aside))
	}
}

// SendVolumes writes what the volumes of a set hold.
func (k *Keeper) SendVolumes(ctx context.Context, set string, to io.Writer) error {
	name, err := record.FolderName(set)
	if err == nil {
		err = pack.Write(ctx, filepath.Join(k.Dir, name), to, func(path string) bool { return path == record.IDName })
	}
	if err != nil {
		return fmt.Errorf("send the volumes %q: %w", set, err)
	}
	return nil
}

// ReceiveVolumes makes a set of what SendVolumes wrote elsewhere.
func (k *Keeper) ReceiveVolumes(set string, from io.Reader) error {
	name, err := record.FolderName(set)
	if err == nil {
		err = k.receive(set, name, from)
	}
	if err != nil {
		return fmt.Errorf("receive the volumes %q: %w", set, err)
	}
	k.Arrived()
	return nil
}

func (k *Keeper) receive(set, name string, from io.Reader) error {
	final, incoming := filepath.Join(k.Dir, name), filepath.Join(k.Dir, incomingPrefix+name)
	if _, err := os.Lstat(final); !errors.Is(err, os.ErrNotExist) {
		return cmp.Or(err, os.ErrExist)
	}
	if err := os.MkdirAll(k.Dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(incoming, 0o711); err != nil {
		return err
	}
	_ = quota.Begin(incoming) // without it a limit is watched
	err := pack.Read(from, incoming, func() error { return disk.Spare(incoming) })
	if err == nil {
		err = record.KeepID(incoming, set)
	}
	if err == nil {
		err = os.Rename(incoming, final)
	}
	if err != nil {
		return errors.Join(err, disk.RemoveAll(incoming))
	}
	return errors.Join(record.Sync(k.Dir), keep(filepath.Join(k.Dir+keptSuffix, name)))
}

// VolumeBytes returns how much each volume of a set takes on the disk.
func (k *Keeper) VolumeBytes(ctx context.Context, set string) (map[string]int64, error) {
	name, err := record.FolderName(set)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(k.Dir, name))
	if err != nil {
		return nil, fmt.Errorf("measure the volumes %q: %w", set, err)
	}
	all := map[string]int64{}
	for _, entry := range entries {
		path := filepath.Join(k.Dir, name, entry.Name())
		one, err := record.IDOf(path)
		if err != nil {
			continue // the record of the set's own ID
		}
		if all[one], err = disk.Bytes(ctx, path); err != nil {
			return nil, fmt.Errorf("measure the volume %q of %q: %w", one, set, err)
		}
	}
	return all, nil
}

// Sweep goes on with deletions that an earlier driver began, and drops what was on its way here then.
func (k *Keeper) Sweep(beside *sync.WaitGroup) {
	entries, _ := os.ReadDir(k.Dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), deletedPrefix) || strings.HasPrefix(entry.Name(), incomingPrefix) {
			beside.Go(func() { _ = disk.RemoveAll(filepath.Join(k.Dir, entry.Name())) })
		}
	}
}

// Paths returns where volumes lie, without those that can lie nowhere.
func Paths(dir string, volumes []driver.Volume) (all []string) {
	for _, v := range volumes {
		if path, err := Path(dir, v); err == nil {
			all = append(all, path)
		}
	}
	return all
}

// Bound has the file system bound what the volumes of a task take in each set, where it can; 0 lifts that. What a task
// only reads is bounded by whoever writes it.
func Bound(dir string, volumes []driver.Volume, limit int64) error {
	var err error
	for _, v := range volumes {
		if path, wrong := Path(dir, v); wrong == nil && !v.ReadOnly {
			err = errors.Join(err, quota.Limit(filepath.Dir(path), limit))
		}
	}
	return err
}

// giveBack lifts the limit of a set: when its last file has gone the number of its project is free. One that cannot be
// lifted keeps nothing from being deleted, only the number from being used again.
func giveBack(set string) { _ = quota.Limit(set, 0) }

// Path is where a volume lies.
func Path(dir string, v driver.Volume) (string, error) {
	set, err := record.FolderName(v.Set)
	if err != nil {
		return "", err
	}
	name, err := record.FolderName(v.Name)
	return filepath.Join(dir, set, name), err
}

// create makes a volume, if it is missing. One that is there stays whose it is.
func create(dir string, v driver.Volume) (path string, err error) {
	if path, err = Path(dir, v); err != nil {
		return "", err
	}
	set := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	switch err := os.Mkdir(set, 0o711); {
	case err == nil:
		_ = quota.Begin(set) // without it a limit is watched
	case !errors.Is(err, os.ErrExist):
		return "", err
	}
	if err := record.KeepID(set, v.Set); err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return path, nil
}
