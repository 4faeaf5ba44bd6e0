package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver"
)

// A task fills the disk of all that is kept of it, to its last byte, and ends: that is known, although nothing more can
// be written there, and its folder can be deleted.
func TestAFullDiskHidesNoEnd(t *testing.T) {
	t.Parallel()
	b, disk := benchOnDisk(t, "size=4m")
	script := `head -c 8m /dev/zero > fill; head -c 8m /dev/zero | dd of=rest bs=1 count=8192 2>/dev/null; exit 7`
	b.start(t, driver.Task{ID: "filler", Command: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"},
		Limits: driver.Limits{DiskBytesAsked: 8 << 20}}) // as it had asked for, so it is not ended
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

// benchOnDisk has its folder on a small disk.
func benchOnDisk(t *testing.T, size string) (b *bench, disk string) {
	t.Helper()
	disk = t.TempDir()
	err := syscall.Mount("tmpfs", disk, "tmpfs", 0, size)
	if errors.Is(err, syscall.EPERM) {
		t.Skip("only root mounts a disk")
	}
	if err != nil {
		t.Fatal(err)
	}
	b = newBench(t)
	b.reopen(t, func() { b.folder = filepath.Join(disk, "driver") })
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return b, disk
}

// On a full disk the task that takes the most beyond what it asked for is ended, and a start waits until there is room.
func TestFillerEnds(t *testing.T) {
	t.Parallel()
	b, _ := benchOnDisk(t, "size=4m")
	fill := func(id, bytes string, asked int64) {
		b.start(t, driver.Task{ID: id, Command: []string{b.binary, programWord, "fill", bytes},
			Limits: driver.Limits{DiskBytesAsked: asked}})
		b.ready(t, id)
	}
	fill("modest", "1000", 0)
	fill("asking", "2000000", 2<<20)
	fill("filler", "2050000", 0)
	got := b.exited(t, "filler")
	if !strings.Contains(got.OutOfDisk, "of 4.0 MiB of the disk") || got.Signal != 9 {
		t.Errorf("got %+v, want it killed for want of disk", got)
	}
	begun := make(chan error, 1)
	go func() {
		begun <- b.Start(b.ctx, driver.Task{ID: "later", Command: []string{b.binary, programWord, "exit", "0"}})
	}()
	if err := b.Forget("filler"); err != nil {
		t.Error(err)
	}
	if err := <-begun; err != nil {
		t.Errorf("a start on a disk that was full: %v", err)
	}
	b.exited(t, "later")
	for _, id := range []string{"modest", "asking"} {
		if got := b.status(id); got.State != driver.Running {
			t.Errorf("a task that takes what it asked for, or little: %+v", got)
		}
		b.stop(t, id, 0)
		b.exited(t, id)
	}
}

// A task makes files until there are no inodes, without a byte in any: it ends, and others start.
func TestFillerOfInodesEnds(t *testing.T) {
	t.Parallel()
	b, _ := benchOnDisk(t, "size=64m,nr_inodes=600")
	b.start(t, driver.Task{ID: "filler", Env: []string{"PATH=/bin:/usr/bin"},
		Command: []string{"sh", "-c", `i=0; while true > f$i; do i=$((i+1)); done; exec sleep 600`}})
	got := b.exited(t, "filler")
	if !strings.Contains(got.OutOfDisk, "of 600 inodes of the disk") || got.Signal != 9 {
		t.Errorf("got %+v, want it killed for want of disk", got)
	}
	if err := b.Forget("filler"); err != nil {
		t.Error(err)
	}
	b.start(t, driver.Task{ID: "later", Command: []string{b.binary, programWord, "exit", "0"}})
	b.exited(t, "later")
}

// TestFoldersAreSpread has ext4 put the folders of tasks apart.
func TestFoldersAreSpread(t *testing.T) {
	folder := openFolder(t)
	var on unix.Statfs_t
	if err := unix.Statfs(folder, &on); err != nil || on.Type != unix.EXT4_SUPER_MAGIC {
		t.Skipf("only on ext4: %v", err)
	}
	if err := open(t, folder).Close(); err != nil {
		t.Fatal(err)
	}
	tasks, err := os.Open(filepath.Join(folder, "tasks"))
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	const topFolder = 0x20000
	if flags, err := unix.IoctlGetUint32(int(tasks.Fd()), unix.FS_IOC_GETFLAGS); err != nil || flags&topFolder == 0 {
		t.Errorf("the folder of all tasks has the flags %#x, %v; chattr +T is missing", flags, err)
	}
}
