package remains_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver/remains"
)

// TestUndeleted opens an archive in which something cannot be deleted.
func TestUndeleted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	folder := t.TempDir()
	mounted := filepath.Join(folder, "task", "work")
	if err := os.MkdirAll(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })
	a, err := remains.Open(folder, remains.Outputs(), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if a.Undeleted() == nil {
		t.Error("nobody is told what could not be deleted")
	}
}

// TestInodes has what is kept go when the disk has few inodes left, as when it has few bytes.
func TestInodes(t *testing.T) {
	base := t.TempDir()
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, "size=64m,nr_inodes=400"); errors.Is(err, unix.EPERM) {
		t.Skip("needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	a, err := remains.Open(filepath.Join(base, "archive"), remains.Folders(), nil)
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	err = os.Mkdir(work, 0o700)
	for n := 0; err == nil && n < 380; n++ {
		err = os.WriteFile(filepath.Join(work, fmt.Sprint(n)), nil, 0o600)
	}
	if err := errors.Join(err, a.Add(work, "lab.m#1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go a.Watch(ctx, func(err error) { t.Error(err) })
	for look := time.NewTicker(time.Millisecond); ; <-look.C {
		if _, err := os.Stat(a.Path("lab.m#1")); errors.Is(err, os.ErrNotExist) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("what failed is kept, and no instance can start")
		}
	}
}
