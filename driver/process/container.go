package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"starling/driver"
	"starling/driver/confine"
	"starling/driver/program"
	"starling/driver/quota"
	"starling/driver/ramdisk"
	"starling/driver/runc"
	"starling/driver/volume"
)

// Containers makes containers ready for the tasks that run in one.
type Containers interface {
	// Pull is that of driver.Driver.
	Pull(ctx context.Context, image driver.Image, tell func(progress string)) (resolved string, err error)
	// Prepare makes the container of a task; key is its name on this machine.
	Prepare(ctx context.Context, key string, t *driver.Task) (*runc.Container, error)
	// Remove gives up all of what Prepare made for a task whose folder is gone. It returns before that is done.
	Remove(key string)
	// Runtime is the path of runc.
	Runtime() string
}

// bundle is where a supervisor, in namespaces of its own, has the task's container.
func (f folder) bundle() string { return f.file("bundle") }

var errNoContainers = errors.New("this peer runs no containers")

// Pull brings an image here.
func (d *Driver) Pull(ctx context.Context, image driver.Image, tell func(progress string)) (string, error) {
	if d.config.Containers == nil {
		return "", errNoContainers
	}
	return d.config.Containers.Pull(ctx, image, tell)
}

// MayContain tells why no containers can run here although there may be images; nil if they can.
func (d *Driver) MayContain() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.namespaces:
		return errNoNamespaces
	case !d.place.EnforcesMemory():
		return errors.New("the peer may not make control groups that limit memory")
	}
	return nil
}

// runtime is what runs containers; it is known before one is made, so that there is no trace of one without it.
func (d *Driver) runtime() string {
	if d.config.Containers == nil {
		return "none"
	}
	return d.config.Containers.Runtime()
}

// prepare makes the container of a task, if it runs in one, and returns it with its runtime.
func (d *Driver) prepare(ctx context.Context, t *task, spec *driver.Task) (*runc.Container, error) {
	if spec.Container == nil {
		return nil, nil
	}
	if d.config.Containers == nil {
		return nil, errNoContainers
	}
	if err := d.MayContain(); err != nil {
		return nil, err
	}
	c, err := d.config.Containers.Prepare(ctx, t.folder.name(), spec)
	if err != nil {
		return nil, err
	}
	t.origin.Disk.Layer = c.Layer()
	return c, t.folder.write(originRecord, t.origin)
}

// remove deletes a task's folder, and gives up its container.
func (d *Driver) remove(t *task) error {
	ramdisk.Unmount(t.folder.private())
	_ = quota.Limit(t.folder.work(), 0) // so that its number may be used again
	err := os.RemoveAll(string(t.folder))
	d.removeContainer(t)
	return err
}

func (d *Driver) removeContainer(t *task) {
	if t.origin.Runtime != "" && d.config.Containers != nil {
		d.config.Containers.Remove(t.folder.name())
	}
}

// launchContainer starts the program of a task in its container. Its root file system is mounted here, where the
// mounts end with the supervisor.
func (s *supervisor) launchContainer(pidfd *int) error {
	if s.mount == nil {
		s.mount = runc.MountBy(append([]string{s.whole.Name()}, s.task.Mounter...))
	}
	bundle, err := runc.Open(s.folder.bundle(), s.task.Container, s.mount)
	if err = errors.Join(err, s.whole.Close()); err != nil {
		return err
	}
	account := bundle.Account()
	s.account = account
	if err := errors.Join(volume.GiveAll(s.task.Task.Reads, account), s.showFolders(bundle, account),
		s.folder.giveSecrets(account), bundle.Link(s.task.Task.Container.Links)); err != nil {
		return err
	}
	bundle.Spec.Linux.CgroupsPath = s.task.Place.Relative(s.task.Group)
	limits := s.task.Place.Resources(s.task.Task.Limits)
	if err := bundle.Give(s.task.Devices); err != nil {
		return err
	}
	limits.Devices = bundle.Spec.Linux.Resources.Devices
	bundle.Spec.Linux.Resources = limits
	files, err := s.openFiles()
	if err != nil {
		return err
	}
	defer closeAll(files)
	if s.task.Task.Proofs.TooOld(s.proof) {
		return errUnproved
	}
	if s.task.Quotas {
		err = confine.KeepAttributes()
	}
	if err == nil {
		s.pid, err = bundle.Start(files)
	}
	s.group = s.task.Place.Open(s.task.Group)
	if err == nil {
		*pidfd, err = s.family.Open(s.pid)
	}
	if err != nil {
		s.family.Kill()
		s.reap()
	}
	return err
}

// showFolders lets the container see the folders that are the task's, at the paths that they have on the machine or
// that the task names, and chooses in which the program starts.
func (s *supervisor) showFolders(bundle *runc.Bundle, account *syscall.Credential) error {
	task, mounts := s.task.Task, s.task.Task.Container.Mounts
	for _, v := range task.Volumes {
		path, err := volume.Make(s.task.Volumes, v, account)
		if err != nil {
			return fmt.Errorf("volume %q of %q: %w", v.Name, v.Set, err)
		}
		m := driver.Mount{Path: path}
		if at := slices.IndexFunc(mounts, func(m driver.Mount) bool { return m.Volume == v.Name }); at >= 0 {
			m = mounts[at]
		}
		bundle.Bind(path, m.Path, m.ReadOnly || v.ReadOnly)
		bundle.Set(v.Variable + "=" + m.Path)
	}
	sayUnbounded(volume.Bound(s.task.Volumes, task.Volumes, task.Limits.VolumesBytes))
	for i, h := range task.HostPaths {
		m := driver.Mount{Path: h.Path, Volume: h.Name}
		if at := slices.IndexFunc(mounts, func(m driver.Mount) bool { return m.Volume == h.Name }); at >= 0 {
			m = mounts[at]
		}
		m.ReadOnly = m.ReadOnly || h.ReadOnly
		source, err := s.bindHostPath(i, h, m.ReadOnly)
		if err != nil {
			return err
		}
		bundle.Bind(source, m.Path, m.ReadOnly)
		bundle.Set(h.Variable + "=" + m.Path)
	}
	for _, m := range mounts {
		if m.Folder != "" {
			bundle.Bind(m.Folder, m.Path, m.ReadOnly)
		}
	}
	for _, path := range append([]string{s.folder.files(), s.folder.private()}, task.Reads...) {
		if _, err := os.Stat(path); err == nil {
			bundle.Bind(path, path, true)
		}
	}
	start := &bundle.Spec.Process.Cwd
	switch {
	case task.WorkDir != "":
		*start = task.WorkDir
		return bundle.CheckFolder(task.WorkDir)
	case *start == "":
		work, err := workDir(s.folder, task, account)
		*start = work
		bundle.Bind(work, work, false)
		return err
	}
	return nil
}

// bindHostPath shows a host path beside the container's root, and returns where: runc would follow a link that has come
// into its place, and would leave what is mounted below it as it is.
func (s *supervisor) bindHostPath(number int, h driver.HostPath, readOnly bool) (path string, err error) {
	if err := program.CheckHostPath(h); err != nil {
		return "", err
	}
	path = filepath.Join(s.folder.bundle(), "host-"+strconv.Itoa(number))
	if err = os.Mkdir(path, 0o700); err == nil {
		err = confine.Bind(confine.Folder{Path: h.Path, ReadOnly: readOnly}, path)
	}
	if err != nil {
		return "", fmt.Errorf("host path %s: %w", h.Name, err)
	}
	return path, nil
}

// giveSecrets gives secret files to the account that the container turned out to have.
func (f folder) giveSecrets(account *syscall.Credential) error {
	return errors.Join(giveSecretsIn(f.private(), account), giveSecretsIn(f.files(), account))
}

func giveSecretsIn(folder string, account *syscall.Credential) error {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != secretMode {
			return err
		}
		return os.Chown(path, int(account.Uid), int(account.Gid))
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// execInContainer runs a program beside the task, in its container.
func (d *Driver) execInContainer(ctx context.Context, known *task, t driver.Task, s driver.Session) (int, error) {
	var record started
	if ok, err := known.folder.read(startedRecord, &record); !ok || err != nil {
		return driver.NoExitCode, errors.Join(errors.New("its records cannot be read"), err)
	}
	if known.origin.Quotas {
		if err := confine.KeepAttributes(); err != nil {
			return driver.NoExitCode, err
		}
	}
	container := runc.Beside{Program: known.origin.Runtime, Dir: known.folder.bundle(), Supervisor: record.Supervisor.PID}
	return container.Exec(ctx, t.Command, s)
}
