package confine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bind shows a folder of the machine, whose path has no symbolic links, at another path, with all that is mounted below
// it. What keeps devices there from being opened, or what is there from being changed, counts for that as well.
func Bind(folder Folder, path string) error {
	file, err := openExactly(folder.Path)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	if err = bind(ofFile(file), path); err == nil {
		err = restrict(unix.AT_FDCWD, path, folder.ReadOnly)
	}
	return err
}

// openExactly opens a folder without following links, not even those on the way to it: who may change the folder above
// one could put a link in its place.
func openExactly(path string) (file int, err error) {
	if file, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		above := file
		file, err = unix.Openat(above, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(above)
		if err != nil {
			return -1, fmt.Errorf("open %s of %s without following links: %w", name, path, err)
		}
	}
	return file, nil
}

// restrict keeps devices from being opened, and programs from getting the rights of their owners, in what is mounted at
// a path and below it: another task may have made them. Read-only keeps it from being changed as well; it is private
// from then on, or else what the machine mounts there later would come too, and could be changed.
func restrict(above int, path string, readOnly bool) error {
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID}
	if readOnly {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
		attributes.Propagation = unix.MS_PRIVATE
	}
	err := unix.MountSetattr(above, path, unix.AT_RECURSIVE|unix.AT_EMPTY_PATH, attributes)
	if errors.Is(err, unix.ENOSYS) {
		return nil // Missing tells
	}
	return err
}

// openFolders opens the folders that the task uses, before anything is mounted over them. One that lies in another
// comes after it, and of two with the same path the one that may be changed.
func (r *Rules) openFolders() (files []int, err error) {
	slices.SortFunc(r.Folders, func(a, b Folder) int {
		if a.Path == b.Path && a.ReadOnly != b.ReadOnly && a.ReadOnly {
			return -1
		}
		return strings.Compare(a.Path, b.Path)
	})
	for _, folder := range r.Folders {
		file, err := openExactly(folder.Path)
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// showFolders has the task find its folders where they lie, whatever was made of what is around them.
func (r *Rules) showFolders(files []int) error {
	for i, folder := range r.Folders {
		if err := folder.show(files[i]); err != nil {
			return fmt.Errorf("show %s: %w", folder.Path, err)
		}
	}
	return nil
}

func (f *Folder) show(file int) error {
	place, err := openExactly(f.Path)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	if err := bind(ofFile(file), ofFile(place)); err != nil {
		return err
	}
	shown, err := openExactly(f.Path) // place is what is below it now
	if err != nil {
		return err
	}
	defer unix.Close(shown)
	return restrict(shown, "", f.ReadOnly)
}

// ofFile is a path of an open file.
func ofFile(file int) string { return fmt.Sprintf("/proc/thread-self/fd/%d", file) }

func closeFiles(files []int) {
	for _, file := range files {
		unix.Close(file)
	}
}
