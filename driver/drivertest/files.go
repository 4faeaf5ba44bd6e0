package drivertest

import (
	"bufio"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"starling/driver"
)

// filesOf returns a version of files in which each says which version it is of.
func filesOf(version uint64, text string) driver.FileSet {
	return driver.FileSet{Version: version, Files: []driver.File{
		{Path: "list", Content: []byte(text)}, {Path: "below/list", Content: []byte(text)},
		{Path: "below/secret", Content: []byte(text), Secret: true},
	}}
}

func (b *bench) renew(t *testing.T, id string, files driver.FileSet, signal syscall.Signal) {
	t.Helper()
	if err := b.Renew(id, files, signal); err != nil {
		t.Errorf("Renew(%q, %d): %v", id, files.Version, err)
	}
}

// testFilesVersion has files renewed in versions that only grow, also by a later driver.
func testFilesVersion(t *testing.T, b *bench) {
	task := b.task("told", "run")
	files := filesOf(3, "three")
	task.Files = &files
	b.startTask(t, task)
	want := func(version uint64) {
		t.Helper()
		if got := b.status("told").FilesVersion; got != version {
			t.Errorf("the task has files of version %d, want %d", got, version)
		}
	}
	want(3)
	b.renew(t, "told", filesOf(7, "seven"), 0)
	want(7)
	b.renew(t, "told", filesOf(5, "five"), 0)
	want(7)
	b.reopen(t, func() {})
	want(7)
	b.renew(t, "unknown", filesOf(1, "one"), 0)
	b.stop(t, "told", 0)
	b.exited(t, "told")
	b.renew(t, "told", filesOf(9, "nine"), 0)
	want(7)
}

// testFiles has a program read its files at its start and when it is told; one that has resolved the folder's path once
// goes on in the version of that time.
func testFiles(t *testing.T, b *bench) {
	folder := b.FilesFolder("reader")
	files := filesOf(1, "one")
	task := b.task("reader", "follow", filepath.Join(folder, "below", "list"))
	task.Files = &files
	b.startTask(t, task)
	log := b.logs(t, "reader", driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true})
	defer log.Close()
	lines := bufio.NewScanner(log)
	written := func(text string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != text {
			t.Errorf("the task wrote %q (%v), want %q", lines.Text(), lines.Err(), text)
		}
	}
	written("one")
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		t.Fatal(err)
	}
	b.renew(t, "reader", filesOf(2, "two"), syscall.SIGHUP)
	written("two")
	for _, c := range []struct{ path, want string }{
		{filepath.Join(folder, "list"), "two"}, {filepath.Join(resolved, "list"), "one"},
		{filepath.Join(folder, "below", "secret"), "two"},
	} {
		if got, err := os.ReadFile(c.path); err != nil || string(got) != c.want {
			t.Errorf("%s holds %q (%v), want %q", c.path, got, err, c.want)
		}
	}
	for version := uint64(3); version < 9; version++ {
		b.renew(t, "reader", filesOf(version, "more"), 0)
	}
	// A program that resolved the folder before a burst reads on what it has begun to read.
	if got, err := os.ReadFile(filepath.Join(resolved, "list")); err != nil || string(got) != "one" {
		t.Errorf("after a burst the first version holds %q (%v), want %q", got, err, "one")
	}
	outside := driver.FileSet{Version: 10, Files: []driver.File{{Path: "../../out"}}}
	if err := b.Renew("reader", outside, 0); err == nil {
		t.Error("a file outside of the folder is written")
	}
	b.gone(t, "reader", folder)
}

// wantPrivate wants files in a folder, for their owner alone.
func wantPrivate(t *testing.T, folder string, files []driver.File) {
	t.Helper()
	for _, file := range files {
		path := filepath.Join(folder, file.Path)
		if text, err := os.ReadFile(path); err != nil || string(text) != string(file.Content) {
			t.Errorf("%s: got %q, %v, want %q", file.Path, text, err, file.Content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want mode 0600", file.Path, info, err)
		}
	}
	if there, err := os.ReadDir(folder); err != nil || len(there) != len(files) {
		t.Errorf("the folder holds %v (%v), want %d files", there, err, len(files))
	}
}

// testPrivate has files written that are the task's alone, and replaced while it reads them.
func testPrivate(t *testing.T, b *bench) {
	folder := b.PrivateFolder("owner")
	task := b.task("owner", "follow", filepath.Join(folder, "one"))
	task.Private = []driver.File{{Path: "one", Content: []byte("begun"), InMemory: true}}
	files := filesOf(1, "")
	task.Files = &files
	b.startTask(t, task)
	lines := bufio.NewScanner(b.logs(t, "owner", driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true}))
	if !lines.Scan() || lines.Text() != "begun" {
		t.Errorf("the task wrote %q (%v), want what it began with", lines.Text(), lines.Err())
	}
	renewed := []driver.File{{Path: "one", Content: []byte("renewed"), OnChange: syscall.SIGHUP},
		{Path: "below/two", Content: []byte("added"), OnChange: syscall.SIGUSR1}} // it had none before
	if err := b.RenewPrivate("owner", renewed); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, folder, renewed)
	if !lines.Scan() || lines.Text() != "renewed" {
		t.Errorf("the task wrote %q (%v), want what was renewed", lines.Text(), lines.Err())
	}
	if err := b.RenewPrivate("owner", renewed); err != nil { // nothing is other, so nothing is sent
		t.Error(err)
	}
	b.renew(t, "owner", filesOf(2, ""), syscall.SIGHUP)
	if !lines.Scan() || lines.Text() != "renewed" {
		t.Errorf("the task wrote %q (%v), want what was renewed", lines.Text(), lines.Err())
	}
	wantPrivate(t, folder, renewed)
	if err := b.RenewPrivate("owner", []driver.File{{Path: "../out"}}); err == nil {
		t.Error("a file outside of the folder is written")
	}
	if err := b.RenewPrivate("unknown", renewed); err != nil {
		t.Errorf("a task that is unknown: %v", err)
	}
	b.gone(t, "owner", folder)
}

// gone stops and forgets a task, of whose files nothing is left then.
func (b *bench) gone(t *testing.T, id, folder string) {
	t.Helper()
	b.stop(t, id, 0)
	b.exited(t, id)
	b.forget(t, id)
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Errorf("the files of %s are still at %s (%v)", id, folder, err)
	}
}
