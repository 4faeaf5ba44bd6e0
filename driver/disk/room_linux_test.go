package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver/disk"
)

// ofInodes returns a disk that has room for bytes, and no more than so many inodes.
func ofInodes(t *testing.T, inodes int) string {
	t.Helper()
	folder := t.TempDir()
	err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=64m,nr_inodes=%d", inodes))
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root mounts a disk")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	return folder
}

// A disk without inodes is full, whatever it has of bytes.
func TestRoomOfInodes(t *testing.T) {
	folder := ofInodes(t, 400)
	if err := errors.Join(disk.Spare(folder), disk.SpareFor(folder, 1<<20)); err != nil {
		t.Error(err)
	}
	for n := range 390 {
		write(t, filepath.Join(folder, fmt.Sprint(n)), 0)
	}
	room, err := disk.RoomOf(folder)
	if err != nil || !room.Full() || !room.Tight() {
		t.Errorf("got %v, %v; want it full", room, err)
	}
	wantInodes(t, room.String(), "of 400 inodes of the disk")
	wantInodes(t, fmt.Sprint(disk.Spare(folder)), "not enough room")
	if err := disk.SpareFor(folder, 1<<20); !errors.Is(err, disk.ErrNoRoom) {
		t.Errorf("for more there: %v", err)
	}
}

func wantInodes(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) || !strings.Contains(text, "inodes") {
		t.Errorf("got %q, want it to say %q", text, want)
	}
}

// The task with the most files ends when the inodes do, though another has asked for less and takes more bytes.
func TestFillerOfInodes(t *testing.T) {
	folder := ofInodes(t, 400)
	write(t, filepath.Join(folder, "large", "file"), 4<<20)
	for n := range 390 {
		write(t, filepath.Join(folder, "many", fmt.Sprint(n)), 0)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w := disk.Watcher{Folder: folder,
		Tasks: func() []disk.Task {
			return []disk.Task{{ID: "large", Folder: filepath.Join(folder, "large")},
				{ID: "many", Folder: filepath.Join(folder, "many"), Use: disk.Use{Asked: 1 << 30}}}
		},
		End: func(id, why string) {
			if id != "many" {
				t.Errorf("%s ends: %s", id, why)
			}
			wantInodes(t, why, "it had 390 files")
			if err := os.RemoveAll(filepath.Join(folder, "many")); err != nil {
				t.Error(err)
			}
			cancel()
		}}
	w.Watch(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("nothing has ended")
	}
}

// TestGuard has work that takes all that it can, of bytes and of inodes. It is stopped while the reserve is whole, and
// may take what a disk has beyond that.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		what, want string
		inodes     int
		bytes      int
	}{{"bytes", "of 64.0 MiB of the disk", 20000, 64 << 10}, {"inodes", "of 2000 inodes", 2000, 0}} {
		folder, files := ofInodes(t, c.inodes), 0
		pace := time.NewTicker(200 * time.Microsecond)
		err := disk.Guard(t.Context(), folder, func(ctx context.Context) error {
			for ; ctx.Err() == nil; files++ {
				write(t, filepath.Join(folder, fmt.Sprint(files)), c.bytes)
				<-pace.C
			}
			return ctx.Err()
		})
		pace.Stop()
		room, roomErr := disk.RoomOf(folder)
		if !errors.Is(err, disk.ErrNoRoom) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.what, err)
		}
		if roomErr != nil || room.Full() || !room.Tight() {
			t.Errorf("%s: after %d files: %s, %v; want that the reserve is left, and little more", c.what, files, room, roomErr)
		}
	}
	folder := ofInodes(t, 400)
	failed := errors.New("it failed")
	if err := disk.Guard(t.Context(), folder, func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want what the work returned", err)
	}
	if err := disk.Guard(t.Context(), folder, func(ctx context.Context) error { return ctx.Err() }); err != nil {
		t.Errorf("with room: %v", err)
	}
}
