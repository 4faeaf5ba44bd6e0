package remains_test

import (
	"os"
	"path/filepath"
	"testing"

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
