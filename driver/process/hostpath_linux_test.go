package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver"
)

// TestHostPaths has a task use folders of the machine, some of which lie in each other.
func TestHostPaths(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only where tasks are confined")
	}
	b, folder := newBench(t), openFolder(t)
	outer, mounted := filepath.Join(folder, "outer"), filepath.Join(folder, "outer", "mounted")
	inner := filepath.Join(outer, "inner")
	for _, path := range []string{inner, mounted} {
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=64k,mode=777"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })
	b.start(t, driver.Task{ID: "user", Env: []string{"PATH=/bin:/usr/bin"},
		Command: []string{"sh", "-c", `for at in $OUTER $OUTER/mounted $INNER; do
			touch $at/made 2> /dev/null && echo $at changed; done; true`},
		HostPaths: []driver.HostPath{{Name: "inner", Path: inner, Variable: "INNER"},
			{Name: "outer", Path: outer, ReadOnly: true, Variable: "OUTER"}}})
	if got := b.exited(t, "user"); got.ExitCode != 0 {
		t.Errorf("got %+v", got)
	}
	if got, want := b.output(t, "user", driver.Stdout), inner+" changed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHostPathsAreNoLinks puts links where folders were when the agent looked.
func TestHostPathsAreNoLinks(t *testing.T) {
	t.Parallel()
	b, folder := newBench(t), openFolder(t)
	for _, path := range []string{"real/data", "offered"} {
		if err := os.MkdirAll(filepath.Join(folder, path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"above": "real", "offered/data": "../real/data"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for id, path := range map[string]string{"last": "offered/data", "above": "above/data"} {
		path = filepath.Join(folder, path)
		b.start(t, driver.Task{ID: id, Command: []string{"/bin/sh", "-c", "true"},
			HostPaths: []driver.HostPath{{Name: "data", Path: path, ReadOnly: true, Variable: "DATA"}}})
		want := "host path data: " + path + " leads elsewhere by a symbolic link now"
		if got := b.exited(t, id); !strings.Contains(got.Error, want) {
			t.Errorf("%s: got %+v, want the error %q", id, got, want)
		}
	}
}
