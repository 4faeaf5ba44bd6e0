package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/pack"
	"starling/driver/program"
	"starling/driver/record"
)

// Volumes lie in folders volumes/<set>/<name> beside that of the tasks. Their names are escaped as those of tasks are.

// What marks a set that is being deleted, and one that is on its way here; no escaped name begins with them.
const (
	deletedPrefix  = ".deleted-"
	incomingPrefix = ".incoming-"
)

func (d *Driver) volumesDir() string { return filepath.Join(d.config.Dir, "volumes") }

// VolumeSets lists the sets of which there are volumes.
func (d *Driver) VolumeSets() []string {
	entries, err := os.ReadDir(d.volumesDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warn(fmt.Sprintf("the volumes cannot be listed: %v", err))
	}
	var sets []string
	for _, entry := range entries {
		if set, err := folder(filepath.Join(d.volumesDir(), entry.Name())).id(); err == nil {
			sets = append(sets, set)
		}
	}
	slices.Sort(sets)
	return sets
}

// MakeVolume makes a volume if it is missing.
func (d *Driver) MakeVolume(v driver.Volume, user string) (path string, err error) {
	account, err := program.Credential(user)
	if err == nil {
		path, err = makeVolume(d.volumesDir(), v, account)
	}
	if err != nil {
		return "", fmt.Errorf("make the volume %q of %q: %w", v.Name, v.Set, err)
	}
	return path, nil
}

// DeleteVolumes deletes the volumes of a set. First the set is renamed, so that it is gone at once.
func (d *Driver) DeleteVolumes(set string) error {
	name, err := folderName(set)
	if err != nil {
		return fmt.Errorf("delete volumes: %w", err)
	}
	doomed := filepath.Join(d.volumesDir(), deletedPrefix+name)
	err = os.Rename(filepath.Join(d.volumesDir(), name), doomed)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(doomed)
	}
	if err != nil {
		return fmt.Errorf("delete the volumes %q: %w", set, err)
	}
	return nil
}

// SendVolumes writes what the volumes of a set hold.
func (d *Driver) SendVolumes(ctx context.Context, set string, to io.Writer) error {
	name, err := folderName(set)
	if err == nil {
		err = pack.Write(ctx, filepath.Join(d.volumesDir(), name), to, func(path string) bool { return path == idRecord })
	}
	if err != nil {
		return fmt.Errorf("send the volumes %q: %w", set, err)
	}
	return nil
}

// ReceiveVolumes makes a set of what SendVolumes wrote elsewhere.
func (d *Driver) ReceiveVolumes(set string, from io.Reader) error {
	name, err := folderName(set)
	if err == nil {
		err = d.receive(set, name, from)
	}
	if err != nil {
		return fmt.Errorf("receive the volumes %q: %w", set, err)
	}
	d.tell()
	return nil
}

func (d *Driver) receive(set, name string, from io.Reader) error {
	final, incoming := filepath.Join(d.volumesDir(), name), filepath.Join(d.volumesDir(), incomingPrefix+name)
	if _, err := os.Lstat(final); !errors.Is(err, os.ErrNotExist) {
		return cmp.Or(err, os.ErrExist)
	}
	if err := os.MkdirAll(d.volumesDir(), 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(incoming, 0o711); err != nil {
		return err
	}
	err := pack.Read(from, incoming, func() error { return disk.Spare(incoming) })
	if err == nil && isShortened(name) {
		err = folder(incoming).writeDurably(idRecord, set)
	}
	if err == nil {
		err = os.Rename(incoming, final)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(incoming))
	}
	return record.Sync(d.volumesDir())
}

// sweepVolumes goes on with deletions that an earlier driver began, and drops what was on its way here then.
func (d *Driver) sweepVolumes() {
	entries, _ := os.ReadDir(d.volumesDir())
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), deletedPrefix) || strings.HasPrefix(entry.Name(), incomingPrefix) {
			d.watching.Go(func() { _ = os.RemoveAll(filepath.Join(d.volumesDir(), entry.Name())) })
		}
	}
}

// makeVolumes makes the volumes of a task that are missing, and returns its environment with their paths and those of
// its host paths.
func makeVolumes(dir string, t driver.Task, account *syscall.Credential) (env []string, err error) {
	env = t.Env
	for _, v := range t.Volumes {
		path, err := makeVolume(dir, v, account)
		if err != nil {
			return nil, fmt.Errorf("volume %q of %q: %w", v.Name, v.Set, err)
		}
		env = append(slices.Clip(env), v.Variable+"="+path)
	}
	for _, h := range t.HostPaths {
		if err := program.CheckHostPath(h); err != nil {
			return nil, err
		}
		env = append(slices.Clip(env), h.Variable+"="+h.Path)
	}
	return env, nil
}

// volumePath is where a volume lies.
func volumePath(dir string, v driver.Volume) (string, error) {
	set, err := folderName(v.Set)
	if err != nil {
		return "", err
	}
	name, err := folderName(v.Name)
	return filepath.Join(dir, set, name), err
}

// makeVolume makes a volume, if it is missing, and gives it to the account with all that is in it, if another has it.
func makeVolume(dir string, v driver.Volume, account *syscall.Credential) (path string, err error) {
	if path, err = volumePath(dir, v); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return "", err
	}
	if err := folder(filepath.Dir(path)).keepID(v.Set); err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	owner := os.Getuid()
	if account != nil {
		owner = int(account.Uid)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if has, ok := info.Sys().(*syscall.Stat_t); ok && int(has.Uid) == owner {
		return path, nil
	}
	group := os.Getgid()
	if account != nil {
		group = int(account.Gid)
	}
	return path, filepath.WalkDir(path, func(one string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(one, owner, group)
	})
}
