package disk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver/disk"
)

func write(t testing.TB, path string, bytes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

// within tells whether a folder takes about as much as was written there: folders take some, too.
func within(t *testing.T, folder string, want int64) {
	t.Helper()
	got, err := disk.Bytes(context.Background(), folder)
	if err != nil || got < want || got > want+64<<10 {
		t.Errorf("%s takes %d, %v; want %d and a little", folder, got, err, want)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "large"), 8<<20)
	write(t, filepath.Join(dir, "a"), 1<<20)
	write(t, filepath.Join(dir, "b", "c"), 2<<20)
	within(t, dir, 3<<20)
	for _, err := range []error{
		os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b", "again")),
		os.Symlink(elsewhere, filepath.Join(dir, "link")),
		os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600), os.Truncate(filepath.Join(dir, "sparse"), 1<<30),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	within(t, dir, 3<<20)
	within(t, filepath.Join(dir, "gone"), 0)
}

// Each file counts, also one that takes nothing but an inode.
func TestFilesCount(t *testing.T) {
	t.Parallel()
	const files = 1500
	dir := t.TempDir()
	for n := range files {
		path := filepath.Join(dir, fmt.Sprint(n))
		var err error
		switch n % 3 {
		case 0:
			err = os.WriteFile(path, nil, 0o600)
		case 1:
			err = os.Symlink("nowhere", path)
		default:
			err = os.Mkdir(path, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := disk.Bytes(t.Context(), dir); err != nil || got < files*4096 {
		t.Errorf("got %d, %v of %d files", got, err, files)
	}
	if got, err := disk.BytesUpTo(t.Context(), dir, 5000); err != nil || got <= 5000 || got >= files*4096 {
		t.Errorf("got %d, %v; want that it looks no further than is enough", got, err)
	}
}

// What lies deeper than a path can say is not overlooked.
func TestDeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := strings.Repeat("d", 200)
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for depth := 0; err == nil && depth < 30; depth++ {
		parent := fd
		if err = unix.Mkdirat(parent, name, 0o700); err == nil {
			fd, err = unix.Openat(parent, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(parent)
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if _, err := disk.Bytes(context.Background(), dir); err == nil {
		t.Error("it was measured")
	}
}

func BenchmarkBytes(b *testing.B) {
	dir := b.TempDir()
	for n := range 10_000 {
		write(b, filepath.Join(dir, fmt.Sprint(n%100), fmt.Sprint(n)), 1)
	}
	for b.Loop() {
		if _, err := disk.Bytes(context.Background(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
