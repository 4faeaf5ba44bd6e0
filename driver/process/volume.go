package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"starling/driver"
	"starling/driver/program"
)

// Volumes lie in folders volumes/<set>/<name> beside that of the tasks. Their names are escaped as those of tasks are.

// deletedPrefix marks a set that is being deleted; no escaped name begins with it.
const deletedPrefix = ".deleted-"

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

// sweepVolumes goes on with deletions that an earlier driver began.
func (d *Driver) sweepVolumes() {
	entries, _ := os.ReadDir(d.volumesDir())
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), deletedPrefix) {
			d.watching.Go(func() { _ = os.RemoveAll(filepath.Join(d.volumesDir(), entry.Name())) })
		}
	}
}

// checkHostPath tells why a task cannot use a host path here, nil if it can.
func checkHostPath(h driver.HostPath) error {
	if h.Path == "" {
		return program.Missing(fmt.Sprintf("this machine does not offer host path %s: see host_paths of its agent", h.Name))
	}
	switch real, err := filepath.EvalSymlinks(h.Path); {
	case err != nil:
		return fmt.Errorf("host path %s: %w", h.Name, err)
	case real != h.Path:
		return program.Missing(fmt.Sprintf("host path %s: %s leads elsewhere by a symbolic link now; if that is meant, start the "+
			"machine's agent again", h.Name, h.Path))
	}
	info, err := os.Stat(h.Path)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("host path %s: %w", h.Name, err)
	}
	return nil
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
		if err := checkHostPath(h); err != nil {
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
