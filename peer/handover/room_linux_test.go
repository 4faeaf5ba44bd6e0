package handover

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver/disk"
	"starling/driver/fake"
	"starling/replica/reaction"
	"starling/terms"
)

// TestNoRoom has an output come to a disk that has room for half of it.
func TestNoRoom(t *testing.T) {
	m := fake.NewMachine(nil)
	m.Volumes = t.TempDir()
	if err := unix.Mount("tmpfs", m.Volumes, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("only root mounts a disk:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(m.Volumes, unix.MNT_DETACH) })
	sent := `{"files":[{"path":"text","bytes":2097152,"sha256":"00"}]}` + "\n" + strings.Repeat("x", 2<<20)
	o := New(Config{Node: "b", Driver: fake.Open(m),
		Fetch: func(context.Context, string, terms.OutputSet) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(sent)), nil
		}})
	_, err := o.obtain(t.Context(), &reaction.Input{Node: "a", Address: "a"}, func() {})
	if !errors.Is(err, disk.ErrNoRoom) || errors.Is(err, ErrLater) ||
		!strings.Contains(err.Error(), "for 2.0 MiB: of 1.0 MiB") {
		t.Errorf("got %v", err)
	}
}
