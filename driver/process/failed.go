package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/record"
)

var (
	errNoFolder = errors.New("it works in a folder of the machine")
	errGone     = errors.New("it has ended, and its folder is deleted: those of the last instances that failed by themselves " +
		"are kept while the disk has room")
)

// Folder opens the folder in which a task works; of one that has failed, what is kept of it.
func (d *Driver) Folder(id string) (*os.Root, error) {
	known, status := d.status(id)
	path, missing := "", errNoFolder
	switch {
	case known == nil, status.State != driver.Running && known.origin.Runtime != "":
		name, err := record.FolderName(id)
		if err != nil {
			return nil, err
		}
		path, missing = d.failed.Path(name), errGone
	case known.origin.Runtime != "":
		path = fmt.Sprintf("/proc/%d/root", status.PID)
	default:
		path = known.folder.work()
	}
	root, err := os.OpenRoot(path)
	if errors.Is(err, os.ErrNotExist) {
		err = missing
	}
	return root, err
}

// keepFailed keeps the folder of a task that failed: neither one that was asked to end, nor one that filled the disk.
// Volumes, secrets and files about members are not in it.
func (d *Driver) keepFailed(t *task) error {
	if t.status.ExitCode == 0 {
		return nil
	}
	var end ended
	if read, err := t.folder.read(endedRecord, &end); err != nil || !read {
		return err
	}
	if end.Stopped || end.Unproved || end.OutOfDisk != "" || disk.Spare(d.config.Dir) != nil {
		return nil
	}
	_ = os.Remove(t.folder.work()) // one that is empty tells nothing, and no other goes by this
	from := t.folder.work()
	if t.origin.Runtime != "" {
		if from = t.origin.Disk.Layer; from == "" {
			return nil
		}
		if err := t.gather(from); err != nil {
			return fmt.Errorf("keep its folder: %w", err)
		}
	}
	info, err := os.Lstat(from)
	if err == nil && info.IsDir() {
		err = d.failed.Add(from, t.folder.name())
	}
	switch {
	case errors.Is(err, syscall.EXDEV):
		d.warnOf(errors.New("folders of failed containers are not kept, because containerd has them on another disk"))
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("keep its folder: %w", err)
	}
	return nil
}

// scratch are the folders of a container of which nothing is kept.
var scratch = []string{"tmp", "var/tmp", "run", "dev", "proc", "sys"}

// gather makes what a container has changed of its image what is kept: with the folder in which it worked, where it was
// in the container, and without what was its own for a while. Links of the container are not followed out of it.
func (t *task) gather(layer string) error {
	root, err := os.OpenRoot(layer)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for _, folder := range scratch {
		err = errors.Join(err, root.RemoveAll(folder))
	}
	at := strings.TrimPrefix(t.folder.work(), "/")
	if _, missing := os.Lstat(t.folder.work()); err != nil || missing != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	parent, err := root.Open(filepath.Dir(at))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Renameat(unix.AT_FDCWD, t.folder.work(), int(parent.Fd()), filepath.Base(at))
}
