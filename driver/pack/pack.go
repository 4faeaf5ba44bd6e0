// Package pack writes what a folder holds as a tar archive, and lays one out in a folder of another machine: files and
// folders with their owners, modes, times and extended attributes, symbolic and hard links. What lives only as long as
// a program, sockets and named pipes, is left out; a device is refused.
package pack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attributePrefix is how the records of an archive name extended attributes.
const attributePrefix = "SCHILY.xattr."

// writer writes one archive.
type writer struct {
	ctx  context.Context
	root *os.Root
	to   *tar.Writer
	// linked has the first name of each file with several.
	linked map[[2]uint64]string
}

// Write writes what is in a folder that nobody writes to, without what skip names of its own entries. The end of ctx
// is an error.
func Write(ctx context.Context, dir string, to io.Writer, skip func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{ctx: ctx, root: root, to: tar.NewWriter(to), linked: map[[2]uint64]string{}}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || path == dir {
			return err
		}
		if path = strings.TrimPrefix(path, dir+"/"); skip(path) {
			return nil
		}
		if err := w.entry(path, entry); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.to.Close()
}

func (w *writer) entry(path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch mode := info.Mode(); {
	case mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
		return nil
	case mode&fs.ModeDevice != 0:
		return errors.New("a device cannot be copied to another machine")
	case mode&fs.ModeSymlink != 0:
		if link, err = w.root.Readlink(path); err != nil {
			return err
		}
	}
	head, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	head.Name, head.Format, head.Uname, head.Gname = path, tar.FormatPAX, "", ""
	head.AccessTime, head.ChangeTime = time.Time{}, time.Time{}
	if info.IsDir() {
		head.Name += "/"
	}
	if first := w.first(path, info); first != "" {
		head.Typeflag, head.Linkname, head.Size = tar.TypeLink, first, 0
		return w.to.WriteHeader(head)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return w.to.WriteHeader(head)
	}
	file, err := w.root.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if head.PAXRecords, err = attributes(file); err != nil {
		return err
	}
	if err := w.to.WriteHeader(head); err != nil || info.IsDir() {
		return err
	}
	_, err = io.CopyN(w.to, &cancelled{w.ctx, file}, info.Size())
	return err
}

// first returns under which name a file was written already, "" if it was not.
func (w *writer) first(path string, info fs.FileInfo) string {
	dev, inode, names := inodeOf(info)
	if names < 2 || info.IsDir() {
		return ""
	}
	key := [2]uint64{dev, inode}
	first, known := w.linked[key]
	if !known {
		w.linked[key] = path
	}
	return first
}

// attributes returns the extended attributes of a file as records of its header. A file system may have none.
func attributes(file *os.File) (map[string]string, error) {
	fd := int(file.Fd())
	size, err := unix.Flistxattr(fd, nil)
	if size == 0 || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	names := make([]byte, size)
	if err == nil {
		size, err = unix.Flistxattr(fd, names)
	}
	if err != nil {
		return nil, fmt.Errorf("list its attributes: %w", err)
	}
	all := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if !isCopied(name) {
			continue
		}
		size, err := unix.Fgetxattr(fd, name, nil)
		value := make([]byte, size)
		if err == nil && size > 0 {
			size, err = unix.Fgetxattr(fd, name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("read its attribute %s: %w", name, err)
		}
		all[attributePrefix+name] = string(value[:size])
	}
	return all, nil
}

// isCopied tells whether an attribute means the same on another machine.
func isCopied(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") ||
		name == "security.capability"
}

// cancelled reads on until its context ends.
type cancelled struct {
	ctx  context.Context
	from io.Reader
}

// Read reads on.
func (c *cancelled) Read(data []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(data)
}

// reader lays out one archive.
type reader struct {
	root *os.Root
	from *tar.Reader
	// owners tells that files get the owners that the archive names.
	owners bool
	// folders get their modes and times when all is in them.
	folders []*tar.Header
	room    func() error
}

// roomEvery is after how many bytes at the latest it is asked whether there is room.
const roomEvery = 16 << 20

// Read lays out an archive that Write wrote in an empty folder, and makes it durable. Owners are kept where this
// process is root. Room is asked again and again; its error ends it. An archive that ends between two entries is taken
// for whole: from must return an error where it was cut off. Nothing is written outside the folder, whatever the
// archive says.
func Read(from io.Reader, dir string, room func() error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := &reader{root: root, from: tar.NewReader(from), owners: os.Geteuid() == 0, room: room}
	for {
		head, err := r.from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = room()
		}
		if err != nil {
			return err
		}
		head.Name = filepath.Clean(head.Name)
		if err := r.entry(head); err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
	}
	for at := len(r.folders) - 1; at >= 0; at-- {
		if err := r.finish(r.folders[at]); err != nil {
			return fmt.Errorf("%s: %w", r.folders[at].Name, err)
		}
	}
	return durable(dir)
}

func (r *reader) entry(head *tar.Header) error {
	switch head.Typeflag {
	case tar.TypeDir:
		r.folders = append(r.folders, head)
		return r.root.Mkdir(head.Name, 0o700)
	case tar.TypeReg:
		return r.file(head)
	case tar.TypeLink:
		return r.root.Link(head.Linkname, head.Name)
	case tar.TypeSymlink:
		if err := r.root.Symlink(head.Linkname, head.Name); err != nil || !r.owners {
			return err
		}
		return r.root.Lchown(head.Name, head.Uid, head.Gid)
	}
	return fmt.Errorf("entries of type %q are not taken", head.Typeflag)
}

func (r *reader) file(head *tar.Header) error {
	file, err := r.root.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = r.content(file, head.Size)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return r.finish(head)
}

// content writes a file; where it has nothing but zeros it gets a hole.
func (r *reader) content(file *os.File, size int64) error {
	piece, zeros, asked := make([]byte, 64<<10), make([]byte, 64<<10), int64(0)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(r.from, piece[:min(size-at, int64(len(piece)))])
		if err != nil {
			return err
		}
		if string(piece[:n]) != string(zeros[:n]) {
			if _, err := file.WriteAt(piece[:n], at); err != nil {
				return err
			}
		}
		if at += int64(n); at-asked >= roomEvery {
			if err := r.room(); err != nil {
				return err
			}
			asked = at
		}
	}
	return file.Truncate(size)
}

// finish gives a file or folder its owner, attributes, mode and times, in an order in which none undoes another.
func (r *reader) finish(head *tar.Header) error {
	if r.owners {
		if err := r.root.Lchown(head.Name, head.Uid, head.Gid); err != nil {
			return err
		}
	}
	file, err := r.root.Open(head.Name)
	if err != nil {
		return err
	}
	defer file.Close()
	for record, value := range head.PAXRecords {
		name, isOne := strings.CutPrefix(record, attributePrefix)
		if !isOne || !isCopied(name) {
			continue
		}
		if err := unix.Fsetxattr(int(file.Fd()), name, []byte(value), 0); err != nil {
			return fmt.Errorf("set its attribute %s: %w", name, err)
		}
	}
	if err := file.Chmod(head.FileInfo().Mode()); err != nil {
		return err
	}
	return r.root.Chtimes(head.Name, head.ModTime, head.ModTime)
}
