// Package manifest says what a folder holds, so that it can be sent to another machine and be checked there.
//
// A manifest lists the files of a folder with their sizes and digests. It is made when nothing writes to the folder any
// more, and stands beside it: a folder with a manifest is whole. Only files and folders are passed on; links and the
// like mean something else, or nothing, on another machine.
package manifest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// Limits of one folder.
const (
	// FilesMax bounds its files and folders together, BytesMax what is in the files.
	FilesMax = 10_000
	BytesMax = int64(64) << 30
	// PathBytesMax bounds the path of a file within it.
	PathBytesMax = 1024
	// headBytesMax is more than the longest manifest takes.
	headBytesMax = 32 << 20
)

var (
	// ErrUnfit is what a folder is that cannot be passed on as it is.
	ErrUnfit = errors.New("it cannot be passed on")
	// ErrChanged is what a folder is that is not any more what its manifest says.
	ErrChanged = errors.New("it has changed since it was whole")
)

// Manifest is what a folder holds, folders before what is in them.
type Manifest struct {
	Files []File `json:"files"`
}

// File is a file, or a folder.
type File struct {
	// Path is within the folder, with slashes.
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
	// Program tells that it may be executed.
	Program bool   `json:"program,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Of reads a folder and makes what is in it durable.
func Of(ctx context.Context, dir string) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	m, total := &Manifest{Files: []File{}}, int64(0)
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if entry.IsDir() {
			err = syncFolder(root, path)
		}
		if err != nil || path == "." {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() { // one with holes would be read for days
			if err := bounded(len(m.Files)+1, total+info.Size()); err != nil {
				return err
			}
		}
		file, err := read(ctx, root, path, entry)
		if err != nil {
			return err
		}
		total += file.Bytes
		m.Files = append(m.Files, file)
		return bounded(len(m.Files), total)
	})
	return m, err
}

// Grown returns ErrUnfit if a folder that is still written to is beyond the limits already. What vanishes meanwhile is
// passed over.
func Grown(ctx context.Context, dir string) error {
	files, total := 0, int64(0)
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && path == dir {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		files++
		return bounded(files, total)
	})
}

// bounded returns an error for what is beyond the limits.
func bounded(files int, bytes int64) error {
	switch {
	case files > FilesMax:
		return fmt.Errorf("%w: it has more than %d files and folders: put them into an archive", ErrUnfit, FilesMax)
	case bytes > BytesMax:
		return fmt.Errorf("%w: its files have more than %d bytes", ErrUnfit, BytesMax)
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(root *os.Root, path string) error {
	open, err := root.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(open.Sync(), open.Close())
}

// reader reads until the end of ctx.
type reader struct {
	ctx  context.Context
	from io.Reader
}

// Read reads on.
func (r reader) Read(data []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(data)
}

func read(ctx context.Context, root *os.Root, path string, entry fs.DirEntry) (File, error) {
	file := File{Path: path, Folder: entry.IsDir()}
	switch {
	case len(path) > PathBytesMax:
		return file, fmt.Errorf("%w: the path %q has more than %d bytes", ErrUnfit, path, PathBytesMax)
	case !utf8.ValidString(path): // the manifest would name another
		return file, fmt.Errorf("%w: the name %q is not UTF-8", ErrUnfit, path)
	case file.Folder:
		return file, nil
	case !entry.Type().IsRegular():
		return file, fmt.Errorf("%w: %q is neither a file nor a folder", ErrUnfit, path)
	}
	open, err := root.Open(path)
	if err != nil {
		return file, err
	}
	defer open.Close()
	info, err := open.Stat()
	if err != nil {
		return file, err
	}
	file.Program = info.Mode()&0o100 != 0
	digest := sha256.New()
	if file.Bytes, err = io.Copy(digest, reader{ctx, open}); err == nil {
		err = open.Sync()
	}
	file.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return file, err
}

// Check looks whether all files and folders are there, with their sizes; what is in them it does not read. The error is
// ErrChanged if something is missing.
func (m *Manifest) Check(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return missing(err)
	}
	defer root.Close()
	for i := range m.Files {
		f := &m.Files[i]
		info, err := root.Lstat(filepath.FromSlash(f.Path))
		switch {
		case err != nil:
			return missing(err)
		case info.IsDir() != f.Folder || !f.Folder && (!info.Mode().IsRegular() || info.Size() != f.Bytes):
			return fmt.Errorf("%w: %q is another", ErrChanged, f.Path)
		}
	}
	return nil
}

// missing marks the error of what is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// Send writes the manifest and then what is in the files of the folder, as Receive reads it. The error is ErrChanged if
// they are not what the manifest says.
func (m *Manifest) Send(dir string, to io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := json.NewEncoder(to).Encode(m); err != nil {
		return err
	}
	for i := range m.Files {
		if m.Files[i].Folder {
			continue
		}
		if err := m.Files[i].send(root, to); err != nil {
			return fmt.Errorf("send %q: %w", m.Files[i].Path, err)
		}
	}
	return nil
}

func (f *File) send(root *os.Root, to io.Writer) error {
	open, err := root.Open(f.Path)
	if err != nil {
		return missing(err)
	}
	defer open.Close()
	digest := sha256.New()
	_, err = io.CopyN(to, io.TeeReader(open, digest), f.Bytes)
	if got := hex.EncodeToString(digest.Sum(nil)); errors.Is(err, io.EOF) || err == nil && got != f.SHA256 {
		return fmt.Errorf("%w: its digest is %s, and was %s", ErrChanged, got, f.SHA256)
	}
	return err
}

// Receive reads what Send has written into an empty folder, and checks every file by its digest. Ask, unless it is nil,
// is told how many bytes will come, and returns an error if they must not. Progress, unless it is nil, is told again
// and again how many of all have come.
func Receive(from io.Reader, dir string, ask func(total int64) error,
	progress func(done, total int64)) (*Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	stream := bufio.NewReaderSize(from, 64<<10)
	head, err := readHead(stream)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	m := &Manifest{}
	if err := json.Unmarshal(head, m); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	total := int64(0)
	for i := range m.Files {
		total += min(max(m.Files[i].Bytes, 0), BytesMax+1)
		if err := bounded(len(m.Files), total); err != nil {
			return nil, err
		}
	}
	if ask != nil {
		if err := ask(total); err != nil {
			return nil, err
		}
	}
	if progress != nil {
		stream = bufio.NewReaderSize(&counted{from: stream, total: total, progress: progress}, 64<<10)
	}
	for i := range m.Files {
		if err := m.Files[i].receive(root, stream); err != nil {
			return nil, fmt.Errorf("receive %q: %w", m.Files[i].Path, err)
		}
	}
	if _, err := stream.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("there is more than the manifest says"), err)
	}
	return m, nil
}

// counted tells what was read.
type counted struct {
	from        io.Reader
	done, total int64
	progress    func(done, total int64)
}

// Read reads on.
func (c *counted) Read(data []byte) (int, error) {
	n, err := c.from.Read(data)
	c.done += int64(n)
	c.progress(c.done, c.total)
	return n, err
}

// readHead reads a line.
func readHead(stream *bufio.Reader) (head []byte, err error) {
	for {
		piece, err := stream.ReadSlice('\n')
		head = append(head, piece...)
		switch {
		case len(head) > headBytesMax:
			return nil, fmt.Errorf("it has more than %d bytes", headBytesMax)
		case err == nil:
			return head, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, cutShort(err)
		}
	}
}

func (f *File) receive(root *os.Root, from io.Reader) error {
	if f.Folder {
		return root.Mkdir(filepath.FromSlash(f.Path), 0o700)
	}
	mode := os.FileMode(0o600)
	if f.Program {
		mode = 0o700
	}
	open, err := root.OpenFile(filepath.FromSlash(f.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	digest := sha256.New()
	_, err = io.CopyN(io.MultiWriter(open, digest), from, f.Bytes)
	if err = errors.Join(cutShort(err), open.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%w: its digest is %s, and was %s", ErrChanged, got, f.SHA256)
	}
	return nil
}

// cutShort says that the end came too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// name is what a manifest is called in the folder that holds it and nothing else.
const name = "manifest.json"

// Keep stores the manifest in a folder: after a crash of the machine there is the whole of it or none.
func (m *Manifest) Keep(dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, name+".new")
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(dir, name)); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncFolder(root, ".")
}

// Kept returns the manifest that a folder holds; the error is os.ErrNotExist if it holds none.
func Kept(dir string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	return m, json.Unmarshal(text, m)
}
