package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/record"
	"starling/driver/remains"
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
		if err := remains.Gather(from, t.folder.work()); err != nil {
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
