package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"starling/driver/plain"
)

// mount makes the thread's own mounts as they should be. What the machine does not have is left out.
func (r *Rules) mount() error {
	shown, err := r.open()
	if err != nil {
		return err
	}
	defer closeAll(shown)
	folders, err := r.openFolders()
	if err != nil {
		return err
	}
	defer closeFiles(folders)
	if !r.hasBase() {
		err = r.devices()
	}
	if err == nil {
		err = r.ownDevices()
	}
	if err != nil {
		return fmt.Errorf("make the task's /dev: %w", err)
	}
	if !r.hasBase() {
		if err := r.system(folders); err != nil {
			return err
		}
	}
	if err := r.show(shown); err != nil {
		return fmt.Errorf("show the task what is its own: %w", err)
	}
	return nil
}

// system keeps the machine's own files from being changed, and its sockets from being found.
func (r *Rules) system(folders []int) error {
	for _, path := range []string{"/usr", "/boot", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/var/spool/cron",
		"/run/cdi", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"} {
		if err := fix(path); err != nil {
			return fmt.Errorf("keep %s from being changed: %w", path, err)
		}
	}
	if err := readOnly("/sys"); err != nil {
		return fmt.Errorf("keep /sys from being changed: %w", err)
	}
	if err := r.showFolders(folders); err != nil {
		return err
	}
	for _, path := range append([]string{"/run/dbus", "/run/systemd/private", "/run/containerd", "/run/docker",
		"/run/docker.sock", "/run/podman", "/run/crio", "/run/buildkit", "/run/k3s/containerd", "/run/k0s",
		"/run/cri-dockerd.sock", "/var/snap/microk8s/common/run"}, r.Covered...) {
		if err := cover(path); err != nil {
			return fmt.Errorf("cover %s: %w", path, err)
		}
	}
	return nil
}

// readOnly keeps all that is mounted at a path, and below it, from being changed.
func readOnly(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	switch {
	case errors.Is(err, unix.ENOSYS): // Missing tells
		return nil
	case errors.Is(err, unix.EINVAL): // nothing is mounted there
		return fix(path)
	}
	return err
}

// fix keeps a path from being changed. A symbolic link leads to one that is fixed itself.
func fix(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	if err == nil {
		err = bind(path, path)
	}
	if err == nil {
		err = readOnly(path)
	}
	return err
}

// bind shows what is at one path, with all that is mounted below it, at another.
func bind(from, to string) error { return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "") }

// cover puts nothing in the place of a folder or file.
func cover(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=555")
	}
	return bind(os.DevNull, path)
}

// open opens what is shown of the hidden folder; what is not there is left out.
func (r *Rules) open() (shown map[string]int, err error) {
	shown = map[string]int{}
	for _, folder := range r.Shown {
		file, err := unix.Open(folder.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			closeAll(shown)
			return nil, fmt.Errorf("open %s: %w", folder.Path, err)
		}
		shown[folder.Path] = file
	}
	return shown, nil
}

func closeAll(files map[string]int) {
	for _, file := range files {
		unix.Close(file)
	}
}

// show puts an empty folder over the hidden one, if there is one, and into it what is shown.
func (r *Rules) show(shown map[string]int) error {
	if r.Hidden == "" {
		return r.bindShown(shown)
	}
	if err := os.MkdirAll(r.Hidden, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", r.Hidden, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=711,size=64k"); err != nil {
		return err
	}
	if err := r.bindShown(shown); err != nil {
		return err
	}
	return readOnlyHere(r.Hidden) // what is bound there stays as it was
}

func (r *Rules) bindShown(shown map[string]int) error {
	for _, folder := range r.Shown {
		file, there := shown[folder.Path]
		if !there {
			continue
		}
		if err := os.MkdirAll(folder.Path, 0o711); err != nil {
			return err
		}
		if err := bind(ofFile(file), folder.Path); err != nil {
			return err
		}
		if err := restrict(unix.AT_FDCWD, folder.Path, folder.ReadOnly); err != nil {
			return err
		}
	}
	return nil
}

// The devices that every task has. The others, which lead to disks, memory and each other's terminals, it has not,
// but for those that it was given.
func harmless() []string {
	return []string{"null", "zero", "full", "random", "urandom", "tty", "fuse", "kvm", "infiniband", "net", "log",
		"mqueue", "hugepages"}
}

// devices makes a /dev, which cannot be changed.
func (r *Rules) devices() error {
	machine, err := unix.Open("/dev", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(machine)
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=16m"); err != nil {
		return err
	}
	wanted := harmless()
	for _, path := range r.Devices {
		wanted = append(wanted, strings.TrimPrefix(path, "/dev/"))
	}
	for _, name := range wanted {
		if err := showDevice(machine, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, leads := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(leads, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir("/dev/pts", 0o755), os.Mkdir("/dev/shm", 0o755)); err != nil {
		return err
	}
	return readOnlyHere("/dev")
}

// ownDevices adds what each task has for itself: shared memory, terminals, and files of accounts.
func (r *Rules) ownDevices() error {
	err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	if err == nil {
		err = r.showAccounts("/dev/shm/account")
	}
	if err != nil {
		return err
	}
	return unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
}

// showAccounts puts files that lie in memory and have no name in the place of others; for a moment they have this one.
func (r *Rules) showAccounts(name string) error {
	for path, text := range r.Accounts {
		if err := showFile(name, path, text); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("put another file over %s: %w", path, err)
		}
	}
	return nil
}

// showFile puts a file over another, which cannot be changed either.
func showFile(name, path string, text []byte) error {
	file, err := plain.Number(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(plain.Write(file, text), unix.Fchmod(file, 0o644), unix.Close(file))
	if err == nil {
		err = bind(name, path)
	}
	if err = errors.Join(err, unix.Unlink(name)); err == nil {
		err = readOnlyHere(path)
	}
	return err
}

// readOnlyHere keeps one file system from being changed, and none that is mounted below it.
func readOnlyHere(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if errors.Is(err, unix.ENOSYS) {
		return nil // Missing tells
	}
	return err
}

// showDevice shows a device, or a folder of them, of the machine's /dev in the task's; one that is missing is left out.
func showDevice(machine int, name string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(machine, name, &info, 0); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	path := filepath.Join("/dev", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		return bind(filepath.Join(ofFile(machine), name), path)
	case unix.S_IFSOCK:
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return bind(filepath.Join(ofFile(machine), name), path)
	case unix.S_IFCHR, unix.S_IFBLK:
		err := unix.Mknod(path, info.Mode&^0o777, int(info.Rdev))
		return errors.Join(err, os.Chmod(path, os.FileMode(info.Mode&0o777)), os.Lchown(path, int(info.Uid), int(info.Gid)))
	}
	return nil
}
