package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deepest is how many folders RemoveAll has open at a time.
const deepest = 64

// RemoveAll deletes what is at a path, however deep its folders are: what lies deeper than a few dozen of them is moved
// up first, so that a task cannot take the open files of whoever deletes what it leaves. It goes on where something
// cannot be deleted, enters nothing that is mounted there, and returns why not all has gone. Nothing at the path is no
// error.
func RemoveAll(path string) error {
	parent, err := os.Open(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	r := &remover{top: -1}
	if err := r.remove(int(parent.Fd()), filepath.Base(path), 0); err != nil {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	return nil
}

// remover deletes one folder. In top, which is that folder's file, it puts what lies too deep, under numbers.
type remover struct{ top, moved int }

func (r *remover) remove(parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	isFolder := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	switch isFolder {
	case nil:
		return nil
	case unix.ENOTDIR:
		return fmt.Errorf("%s: %w", name, err)
	case unix.ENOTEMPTY, unix.EEXIST:
	default:
		return fmt.Errorf("%s: %w", name, isFolder)
	}
	if depth == deepest {
		return r.lift(parent, name)
	}
	file, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	folder := os.NewFile(uintptr(file), name)
	if depth == 0 {
		r.top = file
	}
	err = r.empty(folder, depth)
	folder.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// empty deletes what is in a folder, in as many passes as take something away.
func (r *remover) empty(folder *os.File, depth int) error {
	for {
		if _, err := folder.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := folder.Readdirnames(namesAtOnce)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var failed error
		gone := 0
		for _, name := range names {
			if err := r.remove(int(folder.Fd()), name, depth+1); err != nil {
				failed = err
			} else {
				gone++
			}
		}
		if gone == 0 {
			return failed
		}
	}
}

// lift moves a folder to the top, which is not empty yet and deletes it from there.
func (r *remover) lift(parent int, name string) error {
	for {
		r.moved++
		err := unix.Renameat(parent, name, r.top, fmt.Sprintf(".deeper-%d", r.moved))
		switch err {
		case nil:
			return nil
		case unix.ENOTEMPTY, unix.EEXIST, unix.ENOTDIR: // the name is taken
		default:
			return fmt.Errorf("move %s up: %w", name, err)
		}
	}
}
