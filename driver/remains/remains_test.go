package remains_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"starling/driver/disk"
	"starling/driver/remains"
)

func isOutput(file string) bool { return file == "stdout" }

func TestArchive(t *testing.T) {
	base := t.TempDir()
	open := func(r remains.Retention) *remains.Archive {
		t.Helper()
		a, err := remains.Open(filepath.Join(base, "archive"), r, isOutput)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	add := func(a *remains.Archive, name string, size int) {
		t.Helper()
		folder := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(folder, "work", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(filepath.Join(folder, "stdout"), make([]byte, size), 0o600)
		if err := errors.Join(err, a.Add(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(a *remains.Archive, kept, gone []string) {
		t.Helper()
		for _, name := range kept {
			if files, err := os.ReadDir(a.Path(name)); err != nil || len(files) != 1 {
				t.Errorf("%s: got %v, %v; want its one file", name, files, err)
			}
		}
		for _, name := range gone {
			if _, err := os.Stat(a.Path(name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there (%v)", name, err)
			}
		}
	}

	a := open(remains.Retention{Folders: 3, Bytes: 100})
	for _, name := range []string{"a", "b", "c", "d"} {
		add(a, name, 30)
	}
	check(a, []string{"b", "c", "d"}, []string{"a"})
	add(a, "e", 50)
	check(a, []string{"d", "e"}, []string{"b", "c"})
	add(a, "d", 20)
	check(a, []string{"d", "e"}, nil)

	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(a.Path("d"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(a.Path("e"), "work"), 0o700); err != nil { // a crash within Add
		t.Fatal(err)
	}
	check(open(remains.Retention{Folders: 3, Bytes: 100}), []string{"d", "e"}, nil)
	check(open(remains.Retention{Folders: 1, Bytes: 100}), []string{"e"}, []string{"d"})
}

// TestPools has the pool that keeps most lose its oldest, so that none takes the place of others.
func TestPools(t *testing.T) {
	base := t.TempDir()
	for _, test := range []struct {
		retention remains.Retention
		lost      []string
	}{
		{remains.Retention{Folders: 4, Bytes: 1 << 20}, []string{"lab%2fx.m%5b0%5d%231", "quiet.m%5b0%5d%233"}},
		{remains.Retention{Folders: 9, Bytes: 250}, []string{"quiet.m%5b0%5d%233"}},
	} {
		a, err := remains.Open(filepath.Join(base, fmt.Sprint(test.retention.Folders)), test.retention, isOutput)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"lab%2fx.m%5b0%5d%231", "lab%2fdeep%2fx.m%5b0%5d%232", "quiet.m%5b0%5d%233", "loud.m%5b0%5d%234",
			"lab%2fx.m%5b0%5d%235", "lab%2fy.m%5b0%5d%236"}
		for i, name := range names {
			bytes := 10
			if i == 2 {
				bytes = 200
			} else if i > 3 {
				bytes = 60
			}
			folder := filepath.Join(base, "task")
			err := os.MkdirAll(folder, 0o700)
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, "stdout"), make([]byte, bytes), 0o600))
			if err := errors.Join(err, a.Add(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			_, err := os.Stat(a.Path(name))
			if lost := slices.Contains(test.lost, name); lost != errors.Is(err, os.ErrNotExist) {
				t.Errorf("%+v: %s: %v; want %q lost", test.retention, name, err, test.lost)
			}
		}
	}
}

// TestFolders keeps whole folders: three of a group, and so much of all together as Watch finds them to take.
func TestFolders(t *testing.T) {
	base := t.TempDir()
	a, err := remains.Open(filepath.Join(base, "archive"), remains.Retention{Folders: 9, Bytes: 1 << 20, OfGroup: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, size int) {
		t.Helper()
		folder := filepath.Join(base, "work")
		err := os.MkdirAll(filepath.Join(folder, "deep"), 0o700)
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, "deep", "file"), make([]byte, size), 0o600))
		if err := errors.Join(err, a.Add(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string) bool {
		_, err := os.Stat(filepath.Join(a.Path(name), "deep", "file"))
		return err == nil
	}
	for _, name := range []string{"web.a#1", "web.a#2", "db.a#3", "web.b#4"} {
		add(name, 400<<10)
	}
	if is("web.a#1") || !is("web.a#2") || !is("db.a#3") || !is("web.b#4") {
		t.Error("of a group not the last two are kept")
	}
	add("big.a#5", 2<<20)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		a.Watch(ctx, func(err error) { t.Error(err) })
	}()
	for is("web.a#2") || is("big.a#5") {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("more is kept than may be")
		}
	}
	cancel()
	<-watched
	if !is("db.a#3") || !is("web.b#4") {
		t.Error("one that is too large takes the place of others")
	}
}

// TestClear has folders that are not kept deleted beside their task's end, and by the next agent.
func TestClear(t *testing.T) {
	base := t.TempDir()
	if room, err := disk.RoomOf(base); err != nil || room.Tight() {
		t.Skip("on a disk with little room all is deleted at once")
	}
	open := func() *remains.Archive {
		t.Helper()
		a, err := remains.Open(filepath.Join(base, "archive"), remains.Retention{Folders: 1, Bytes: 100}, isOutput)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := open()
	for _, name := range []string{"a", "b"} {
		folder := filepath.Join(base, name)
		err := os.MkdirAll(filepath.Join(folder, "work", "deep"), 0o700)
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, "stdout"), nil, 0o600))
		if err = errors.Join(err, a.Add(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		_ = filepath.WalkDir(base, func(path string, entry os.DirEntry, err error) error {
			if err == nil && (entry.Name() == "deep" || entry.Name() == "a") {
				names = append(names, path)
			}
			return err
		})
		return names
	}
	if got := left(); len(got) != 3 {
		t.Errorf("left is %q, want the folders of both tasks, and the first task's own", got)
	}
	for _, path := range []string{a.Path("a"), filepath.Join(a.Path("b"), "work")} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		after := open()
		go after.Clear(ctx, func(err error) { t.Error(err) })
		synctest.Wait() // for more to be doomed
		if got := left(); len(got) > 0 {
			t.Errorf("left is %q", got)
		}
	})
}
