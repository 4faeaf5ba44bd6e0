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

// TestDevicesInFolders has a task find devices in its folders that others have left there.
func TestDevicesInFolders(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	b, folder := newBench(t), openFolder(t)
	b.reopen(t, func() { b.folder = filepath.Join(openFolder(t), "driver") })
	volume := driver.Volume{Set: "job.task[0]@1", Name: "data", Variable: "DATA"}
	path, err := b.MakeVolume(volume)
	if err != nil {
		t.Fatal(err)
	}
	inner, offered := filepath.Join(folder, "outer", "inner"), filepath.Join(folder, "offered")
	for _, at := range []string{path, inner, offered} {
		err := os.MkdirAll(at, 0o777)
		if err == nil {
			err = unix.Mknod(filepath.Join(at, "zero"), unix.S_IFCHR, int(unix.Mkdev(1, 5)))
		}
		if err == nil {
			err = os.Chmod(filepath.Join(at, "zero"), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.start(t, driver.Task{ID: "user", User: driver.OwnUser("job"), Env: []string{"PATH=/bin:/usr/bin"},
		Command: []string{"/bin/sh", "-c", `head -c 1 /dev/zero | wc -c; for at in $DATA $OUTER/inner $OFFERED; do
			test -c $at/zero && head -c 1 $at/zero > /dev/null && echo $at has a device; done; true`},
		Volumes: []driver.Volume{volume}, HostPaths: []driver.HostPath{
			{Name: "outer", Path: filepath.Dir(inner), Variable: "OUTER"},
			{Name: "offered", Path: offered, ReadOnly: true, Variable: "OFFERED"}}})
	if got, want := b.output(t, "user", driver.Stdout), "1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.output(t, "user", driver.Stderr); strings.Count(got, "Permission denied") != 3 {
		t.Errorf("got %q, want that each is refused", got)
	}
}

// TestReads has tasks of a user of their own read what the peer has brought, and write on what it looks at meanwhile.
func TestReads(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	b := newBench(t)
	b.reopen(t, func() { b.folder = filepath.Join(openFolder(t), "driver") })
	brought, err := b.MakeVolume(driver.Volume{Set: "other", Name: "output"})
	if err == nil {
		err = os.WriteFile(filepath.Join(brought, "text"), []byte("brought\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	output := driver.Volume{Set: "own", Name: "output", Variable: "OUTPUT"}
	b.start(t, driver.Task{ID: "reader", User: driver.OwnUser("job"),
		Env:     []string{"PATH=/bin:/usr/bin", "BROUGHT=" + brought},
		Command: []string{"/bin/sh", "-c", `cat $BROUGHT/text; until test -e go; do sleep 0.05; done; echo on > $OUTPUT/on && echo wrote`},
		Volumes: []driver.Volume{output}, Reads: []string{brought}})
	path, err := b.MakeVolume(output) // as the peer does to measure it
	if err == nil {
		err = os.WriteFile(filepath.Join(b.folder, "tasks", "reader", "work", "go"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.exited(t, "reader")
	if got, want := b.output(t, "reader", driver.Stdout), "brought\nwrote\n"; got != want {
		t.Errorf("got %q, want %q; %s", got, want, b.output(t, "reader", driver.Stderr))
	}
	if _, err := os.Stat(filepath.Join(path, "on")); err != nil {
		t.Error(err)
	}
}
