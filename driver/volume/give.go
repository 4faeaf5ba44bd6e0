package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/program"
	"starling/driver/record"
)

// keptSuffix makes of the name of the folder of all volumes that of another, beside it, which has a file for each set
// that was made. It may lie on another disk than they do.
const keptSuffix = ".kept"

// Make makes a volume durably, if it is missing, and gives it to the account. A set that was made once, and of which
// nothing is here, as when its disk is not mounted, is a program.Missing: whoever had data must not find an empty
// folder.
func Make(dir string, v driver.Volume, account *syscall.Credential) (path string, err error) {
	if path, err = Path(dir, v); err != nil {
		return "", err
	}
	set := filepath.Dir(path)
	kept := filepath.Join(dir+keptSuffix, filepath.Base(set))
	_, notHere := os.Lstat(path)
	_, notKept := os.Lstat(kept)
	if notHere != nil && notKept == nil && !hasFolders(set) {
		return "", program.Missing(fmt.Sprintf("its volume %s (%s) is not in %s any more: bring it back, or let the instance begin "+
			"with an empty one: starling alloc stop --give-up-volumes INSTANCE", v.Name, v.Set, dir))
	}
	if path, err = create(dir, v); err == nil && notHere != nil {
		err = errors.Join(record.Sync(set), record.Sync(dir))
	}
	if err == nil && notKept != nil {
		err = keep(kept)
	}
	if err != nil {
		return "", err
	}
	return path, Give(path, account)
}

// MakeAll makes the volumes of a task, and returns its environment with their paths and those of its host paths.
func MakeAll(dir string, t driver.Task, account *syscall.Credential) (env []string, err error) {
	env = t.Env
	for _, v := range t.Volumes {
		path, err := Make(dir, v, account)
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

// keep notes durably that a set was made.
func keep(kept string) error {
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		return err
	}
	return record.Sync(filepath.Dir(kept))
}

// hasFolders tells whether there are folders in one.
func hasFolders(path string) bool {
	entries, _ := os.ReadDir(path)
	return slices.ContainsFunc(entries, os.DirEntry.IsDir)
}

// GiveAll gives folders as Give does; those that are not there are passed over.
func GiveAll(paths []string, account *syscall.Credential) error {
	for _, path := range paths {
		if err := Give(path, account); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Give gives a folder with all that is in it to an account, nil for this process's own, unless it has the folder. Those
// who had it may still change what is in it: no link is followed.
func Give(path string, account *syscall.Credential) error {
	g := giving{owner: os.Getuid(), group: os.Getgid()}
	if account != nil {
		g.owner, g.group = int(account.Uid), int(account.Gid)
	}
	folder, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	var info unix.Stat_t
	if err := unix.Fstat(folder, &info); err != nil || int(info.Uid) == g.owner {
		unix.Close(folder)
		return err
	}
	g.before = info.Uid
	if err := g.folder(folder, path); err != nil {
		return fmt.Errorf("give %s to the user %d: %w", path, g.owner, err)
	}
	return nil
}

// giving gives what belonged to one account, before, to another.
type giving struct {
	before       uint32
	owner, group int
}

// folder gives an open folder, which it closes, when all in it was given: what is cut short is repeated.
func (g *giving) folder(folder int, path string) error {
	open := os.NewFile(uintptr(folder), path)
	defer open.Close()
	names, err := open.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.entry(folder, name); err != nil {
			return &os.PathError{Op: "give", Path: name, Err: err}
		}
	}
	return open.Chown(g.owner, g.group)
}

// entry gives what has a name in an open folder. A file that is another's, and has a name elsewhere as well, stays
// whose it is: whoever has put its name here need not have it. What vanishes meanwhile is passed over.
func (g *giving) entry(above int, name string) error {
	var info unix.Stat_t
	err := unix.Fstatat(above, name, &info, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR:
		var below int
		below, err = unix.Openat(above, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			return g.folder(below, name)
		}
	case err == nil && info.Nlink > 1 && info.Uid != g.before:
		return nil
	case err == nil:
		err = unix.Fchownat(above, name, g.owner, g.group, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
