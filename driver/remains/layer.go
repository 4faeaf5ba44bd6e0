package remains

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch are the folders of a container of which nothing is kept.
var scratch = []string{"tmp", "var/tmp", "run", "dev", "proc", "sys"}

// Gather makes what a container has changed of its image, its layer, what is kept: with the folder in which it worked,
// moved to where it was in the container, and without what was its own for a while. Links of the container are not
// followed out of it.
func Gather(layer, work string) error {
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
	at := strings.TrimPrefix(work, "/")
	if _, missing := os.Lstat(work); err != nil || missing != nil {
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
	return unix.Renameat(unix.AT_FDCWD, work, int(parent.Fd()), filepath.Base(at))
}
