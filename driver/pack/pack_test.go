package pack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listed is all that is in a folder, a line each.
func listed(t *testing.T, dir string) string {
	t.Helper()
	var lines strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&lines, "%q %s %d:%d", strings.TrimPrefix(path, dir), info.Mode(), stat.Uid, stat.Gid)
		if note := make([]byte, 100); info.Mode().IsRegular() {
			size, _ := unix.Getxattr(path, "user.note", note)
			fmt.Fprintf(&lines, " note=%q", note[:max(size, 0)])
		}
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&lines, " %x names=%d %s", text, stat.Nlink, info.ModTime())
		case info.IsDir():
			fmt.Fprintf(&lines, " %s", info.ModTime())
		default:
			to, err := os.Readlink(path)
			fmt.Fprintf(&lines, " -> %s %v", to, err)
		}
		lines.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func none(string) bool          { return false }
func alwaysRoom() error         { return nil }
func at(second int64) time.Time { return time.Unix(second, 123_456_789) }

// TestCopyIsTheSame lays out what was written: contents, owners, modes, times, links, and names of any bytes.
func TestCopyIsTheSame(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	name := func(path string) string { return filepath.Join(from, path) }
	must(t,
		os.MkdirAll(name("data/\xff\xfe/deep"), 0o755),
		os.WriteFile(name("data/\xff\xfe/deep/\xc3"), []byte("bytes"), 0o640),
		os.WriteFile(name("data/program"), []byte("#!/bin/sh\n"), 0o750),
		os.WriteFile(name("data/empty"), nil, 0o400),
		os.Link(name("data/program"), name("data/again")),
		os.Symlink("/etc/passwd", name("data/out")),
		os.Symlink("nowhere", name("data/dangling")),
		os.Mkdir(name("data/closed"), 0o755),
		os.WriteFile(name("data/closed/in"), []byte("x"), 0o600),
		syscall.Mkfifo(name("data/pipe"), 0o600),
		os.WriteFile(name("left-out"), nil, 0o600),
	)
	if os.Geteuid() == 0 {
		must(t, os.Chown(name("data/program"), 4711, 4712), os.Lchown(name("data/out"), 4711, 4711),
			os.Chmod(name("data/program"), fs.ModeSetuid|0o755))
	}
	if err := unix.Setxattr(name("data/program"), "user.note", []byte("a\x00b"), 0); !errors.Is(err, unix.ENOTSUP) {
		must(t, err)
	}
	must(t, os.Chtimes(name("data/program"), at(1_000_000_000), at(1_000_000_000)), os.Chmod(name("data/closed"), 0o500),
		os.Chtimes(name("data/closed"), at(1_100_000_000), at(1_100_000_000)),
		os.Chtimes(name("data"), at(1_200_000_000), at(1_200_000_000)))
	var archive bytes.Buffer
	must(t, Write(context.Background(), from, &archive, func(path string) bool { return path == "left-out" }))
	must(t, Read(&archive, to, alwaysRoom), os.Remove(name("data/pipe")), os.Remove(name("left-out")),
		os.Chtimes(name("data"), at(1_200_000_000), at(1_200_000_000)))
	if got, want := listed(t, to), listed(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestHolesStayHoles does not let a file of zeros take the disk of its new machine.
func TestHolesStayHoles(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(from, "sparse"))
	must(t, err)
	_, err = file.WriteAt([]byte("end"), 200<<20)
	must(t, err, file.Close())
	var archive bytes.Buffer
	must(t, Write(context.Background(), from, &archive, none), Read(&archive, to, alwaysRoom))
	info, err := os.Stat(filepath.Join(to, "sparse"))
	must(t, err)
	if stat := info.Sys().(*syscall.Stat_t); info.Size() != 200<<20+3 || stat.Blocks*512 > 1<<20 {
		t.Errorf("it has %d bytes and takes %d", info.Size(), stat.Blocks*512)
	}
}

// TestTarReadsIt has the format of others.
func TestTarReadsIt(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(from, "a"), []byte("text"), 0o600))
	var archive bytes.Buffer
	must(t, Write(context.Background(), from, &archive, none))
	untar := exec.Command("tar", "-x", "-C", to)
	untar.Stdin = &archive
	if out, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(to, "a")); string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestHostileArchives writes nothing outside the folder.
func TestHostileArchives(t *testing.T) {
	file := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	link := func(kind byte, name, to string) *tar.Header {
		return &tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	for name, heads := range map[string][]*tar.Header{
		"above":              {file("../evil")},
		"absolute":           {file("/evil")},
		"through a link":     {link(tar.TypeSymlink, "a", ".."), file("a/evil")},
		"hard link to above": {link(tar.TypeLink, "a", "../secret")},
		"over a link":        {link(tar.TypeSymlink, "a", "../secret"), file("a")},
		"device":             {{Typeflag: tar.TypeChar, Name: "a", Devmajor: 1, Devminor: 3}},
		"pipe":               {{Typeflag: tar.TypeFifo, Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			must(t, os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(outer, "secret"), []byte("kept"), 0o600))
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, head := range heads {
				must(t, w.WriteHeader(head))
			}
			must(t, w.Close())
			if err := Read(&archive, dir, alwaysRoom); err == nil {
				t.Error("it was taken")
			}
			entries, err := os.ReadDir(outer)
			text, _ := os.ReadFile(filepath.Join(outer, "secret"))
			if must(t, err); len(entries) != 2 || string(text) != "kept" {
				t.Errorf("beside the folder there is %v, and the secret says %q", entries, text)
			}
		})
	}
}

// TestEndsEarly is an error when the archive is cut off, when there is no room, and when it is called off.
func TestEndsEarly(t *testing.T) {
	from := t.TempDir()
	must(t, os.WriteFile(filepath.Join(from, "a"), bytes.Repeat([]byte("x"), 40<<20), 0o600))
	var archive bytes.Buffer
	must(t, Write(context.Background(), from, &archive, none))
	for _, length := range []int{0, 512, 1 << 20, archive.Len() - 600} {
		if err := Read(bytes.NewReader(archive.Bytes()[:length]), t.TempDir(), alwaysRoom); length > 0 && err == nil {
			t.Errorf("%d bytes of %d were taken for all", length, archive.Len())
		}
	}
	full, asked := errors.New("full"), 0
	err := Read(&archive, t.TempDir(), func() error {
		if asked++; asked == 2 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v without room", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Write(ended, from, &archive, none); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
