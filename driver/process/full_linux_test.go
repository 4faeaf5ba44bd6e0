package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"starling/driver"
)

// A task fills the disk of all that is kept of it, to its last byte, and ends: that is known, although nothing more can
// be written there, and its folder can be deleted.
func TestAFullDiskHidesNoEnd(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m")
	if errors.Is(err, syscall.EPERM) {
		t.Skip("only root mounts a disk")
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.reopen(t, func() { b.folder = filepath.Join(disk, "driver") })
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	script := `head -c 8m /dev/zero > fill; head -c 8m /dev/zero | dd of=rest bs=1 count=8192 2>/dev/null; exit 7`
	b.start(t, driver.Task{ID: "filler", Command: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}})
	if got := b.exited(t, "filler"); got.ExitCode != 7 {
		t.Errorf("the task that filled the disk: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 4096), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("there is room: %v", err)
	}
	if err := b.Forget("filler"); err != nil {
		t.Errorf("its folder cannot be deleted: %v", err)
	}
	if err := os.WriteFile(filepath.Join(disk, "more"), make([]byte, 1<<20), 0o600); err != nil {
		t.Errorf("there is no room again: %v", err)
	}
}
