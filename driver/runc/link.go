package runc

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/continuity/fs"

	"starling/driver"
)

// Link makes symbolic links in the root file system, in place of files that the image has there. A link leads to what
// is replaced by renaming, which nobody would see who had that mounted. Nothing of the container runs yet.
func (b *Bundle) Link(links []driver.Link) error {
	for _, l := range links {
		if err := b.link(l); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	return nil
}

func (b *Bundle) link(l driver.Link) error {
	root := b.Spec.Root.Path
	folder, err := fs.RootPath(root, path.Dir(l.Path)) // as the program will find it: links of the image stay in its root
	if err != nil {
		return err
	}
	at := filepath.Join(folder, path.Base(l.Path))
	if err := b.showsThrough(at); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(at)
	switch {
	case err == nil && info.IsDir():
		return errors.New("the image has a folder there")
	case err == nil:
		err = os.Remove(at)
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	return os.Symlink(l.Target, at)
}

// showsThrough has what is mounted above a path of the root file system show what lies there.
func (b *Bundle) showsThrough(at string) error {
	for i := range b.Spec.Mounts {
		m := &b.Spec.Mounts[i]
		mount, err := fs.RootPath(b.Spec.Root.Path, m.Destination)
		switch {
		case err != nil:
			return err
		case at != mount && !strings.HasPrefix(at, mount+"/"):
		case m.Type != "tmpfs" || at == mount:
			return fmt.Errorf("something else is mounted at %s", m.Destination)
		case !slices.Contains(m.Options, copyUp):
			m.Options = append(slices.Clip(m.Options), copyUp)
		}
	}
	return nil
}

// copyUp has a file system in memory begin with what it covers.
const copyUp = "tmpcopyup"
