package drivertest

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"starling/driver"
)

// processContract is the part of the contract that only real processes can keep.
func processContract() map[string]func(*testing.T, *bench) {
	return map[string]func(*testing.T, *bench){
		"DiskLimit":        testDiskLimit,
		"Environment":      testEnvironment,
		"Path":             testPath,
		"WorkDir":          testWorkDir,
		"KeepsFailed":      testKeepsFailed,
		"Volumes":          testVolumes,
		"ReadsOnly":        testReadsOnly,
		"Files":            testFiles,
		"Private":          testPrivate,
		"Run":              testRun,
		"Session":          testSession,
		"SessionEnds":      testSessionEnds,
		"SessionGoesOn":    testSessionGoesOn,
		"SessionIsOver":    testSessionIsOver,
		"Terminal":         testTerminal,
		"UsageGrows":       testUsageGrows,
		"StopFamily":       testStopFamily,
		"StopSignal":       testStopSignal,
		"VolumesLimit":     testVolumesLimit,
		"ExitEndsFamily":   testExitEndsFamily,
		"ExitWithNoDriver": testExitWithNoDriver,
	}
}

func testEnvironment(t *testing.T, b *bench) {
	some := []string{"B=2", "A=1", "EMPTY=", "RAW=\xff"}
	if b.machine.Container != nil {
		some = some[:3] // what describes a container is text
	}
	for id, env := range map[string][]string{"none": nil, "some": some} {
		task := b.task(id, "environment")
		task.Env = env
		b.startTask(t, task)
		b.exited(t, id)
		want := strings.Join(env, "\n")
		got := strings.TrimSuffix(b.output(t, id, driver.Stdout), "\n")
		lines := slices.DeleteFunc(strings.Split(got, "\n"), func(line string) bool {
			path := strings.HasPrefix(line, "PATH=") && b.machine.Container != nil // every container has one
			return path || strings.HasPrefix(line, "HOME=/")                       // which depends on the account
		})
		if len(lines) == strings.Count(got, "\n")+1 {
			t.Errorf("%s: got the environment %q, want a HOME", id, got)
		}
		got = strings.Join(lines, "\n")
		if got != want {
			t.Errorf("%s: got the environment %q, want %q", id, got, want)
		}
	}
}

// testPath finds a program in the PATH of the task's own environment.
func testPath(t *testing.T, b *bench) {
	folder := t.TempDir()
	script := "#!/bin/sh\necho found\nexit 4\n"
	if err := os.WriteFile(filepath.Join(folder, "only-here"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b.startTask(t, driver.Task{ID: "path", Command: []string{"only-here"}, Env: []string{"PATH=/nowhere:" + folder}})
	wantExit(t, b.exited(t, "path"), 4, 0)
	b.startTask(t, driver.Task{ID: "relative", Command: []string{"./only-here"}, WorkDir: folder})
	wantExit(t, b.exited(t, "relative"), 4, 0)
	b.startTask(t, driver.Task{ID: "no path", Command: []string{"only-here"}})
	wantFailure(t, b.exited(t, "no path"), "only-here", "not found", "PATH")
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.startTask(t, driver.Task{ID: "not executable", Command: []string{text}})
	wantFailure(t, b.exited(t, "not executable"), text)
}

func testWorkDir(t *testing.T, b *bench) {
	given := b.task("given", "folder")
	var err error
	if given.WorkDir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	b.startTask(t, given)
	b.exited(t, "given")
	if got, want := b.output(t, "given", driver.Stdout), given.WorkDir+"\n"; got != want {
		t.Errorf("got the folder %q, want %q", got, want)
	}

	folders := map[string]bool{}
	for _, id := range []string{"fresh", "other"} {
		b.start(t, id, "folder")
		b.exited(t, id)
		folder := strings.TrimSpace(b.output(t, id, driver.Stdout))
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != 0 {
			t.Errorf("the fresh folder %q holds %v (%v), want nothing", folder, entries, err)
		}
		folders[folder] = true
		b.forget(t, id)
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("the folder %q is still there after Forget (%v)", folder, err)
		}
	}
	if len(folders) != 2 {
		t.Errorf("two tasks shared a fresh folder: %q", slices.Collect(maps.Keys(folders)))
	}

	missing := b.task("missing", "folder")
	missing.WorkDir = "/no/such/folder"
	b.startTask(t, missing)
	wantFailure(t, b.exited(t, "missing"), "/no/such/folder")
}

// testVolumes has tasks of one slot find what those before them left, and those of others nothing.
func testVolumes(t *testing.T, b *bench) {
	write := func(id, set, name string) string {
		task := b.task(id, "keep", "VOLUME_"+name, id)
		task.Volumes = []driver.Volume{{Set: set, Name: "data", Variable: "VOLUME_data"},
			{Set: set, Name: "..", Variable: "VOLUME_odd"}}
		b.startTask(t, task)
		wantExit(t, b.exited(t, id), 0, 0)
		return b.output(t, id, driver.Stdout)
	}
	for _, c := range []struct{ id, set, name, want string }{
		{"first", "slot 0", "data", "first\n"},
		{"odd", "slot 0", "odd", "odd\n"},
		{"other", "slot 1", "data", "other\n"},
		{"second", "slot 0", "data", "first\nsecond\n"},
	} {
		if got := write(c.id, c.set, c.name); got != c.want {
			t.Errorf("%s found %q, want %q", c.id, got, c.want)
		}
		b.forget(t, c.id)
	}
	path, err := b.MakeVolume(driver.Volume{Set: "slot 0", Name: "data"})
	if err == nil {
		_, err = os.Stat(filepath.Join(path, "kept"))
	}
	if err != nil {
		t.Errorf("what a task left in a volume: %v", err)
	}
	if got, err := b.VolumeBytes(b.ctx, "slot 0"); err != nil || len(got) != 2 || got["data"] == 0 {
		t.Errorf("the volumes take %v, %v", got, err)
	}
	var archive bytes.Buffer
	if err := b.SendVolumes(b.ctx, "slot 0", &archive); err != nil {
		t.Fatal(err)
	}
	if err := b.ReceiveVolumes("slot 2", &archive); err != nil {
		t.Fatal(err)
	}
	if got := write("copied", "slot 2", "data"); got != "first\nsecond\ncopied\n" {
		t.Errorf("in a copy a task found %q", got)
	}
	if err := b.DeleteVolumes("slot 0"); err != nil {
		t.Error(err)
	}
	if got := write("third", "slot 0", "data"); got != "third\n" {
		t.Errorf("after the volumes were deleted: found %q, want nothing from before", got)
	}
}

// testReadsOnly has tasks write into what they are given to read.
func testReadsOnly(t *testing.T, b *bench) {
	if told := strings.Join(b.Warnings(), "\n"); strings.Contains(told, "may change what they are given to read") {
		t.Skip(told)
	}
	brought, err := b.MakeVolume(driver.Volume{Set: "other", Name: "output"})
	kept := filepath.Join(brought, "kept")
	if err == nil {
		err = os.WriteFile(kept, []byte("brought\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for variable, code := range map[string]int{"BROUGHT": 99, "INPUT": 99, "OUTPUT": 0} {
		task := b.task(variable, "keep", variable, "evil")
		task.Env, task.Reads = []string{"BROUGHT=" + brought}, []string{brought}
		task.Volumes = []driver.Volume{{Set: "own", Name: "input", Variable: "INPUT", ReadOnly: true},
			{Set: "own", Name: "output", Variable: "OUTPUT"}}
		b.startTask(t, task)
		wantExit(t, b.exited(t, task.ID), code, 0)
		if got := b.output(t, task.ID, driver.Stderr); code != 0 && !strings.Contains(got, "read-only file system") {
			t.Errorf("%s: it wrote %q", variable, got)
		}
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != "brought\n" {
		t.Errorf("what the others read is %q now (%v)", got, err)
	}
}

// testRun runs programs beside a task, where the task runs.
func testRun(t *testing.T, b *bench) {
	volumes := []driver.Volume{{Set: "set", Name: "data", Variable: "DATA"}}
	task := b.task("task", "run")
	task.Volumes = volumes
	b.startTask(t, task)
	b.ready(t, "task")
	run := func(words ...string) error {
		beside := b.task("task", words...)
		beside.Volumes = volumes
		return driver.Run(b.ctx, b, beside)
	}
	if err := run("keep", "DATA", "line"); err != nil {
		t.Errorf("a program that succeeds: %v", err)
	}
	if err := run("print", "words", "and more"); err != nil {
		t.Errorf("a program that says something: %v", err)
	}
	if err := run("exit", "7"); err == nil || !strings.Contains(err.Error(), "7") ||
		!strings.Contains(err.Error(), "exit") {
		t.Errorf("got %v, want the status 7 and what it said", err)
	}
	short, cancel := context.WithTimeout(b.ctx, shortProof)
	defer cancel()
	if err := driver.Run(short, b, b.task("task", "ignore")); err == nil {
		t.Error("a program that does not end in time has succeeded")
	}
}

// testStopFamily stops a task whose descendants ignore SIGTERM, one of them in a session of its own.
func testStopFamily(t *testing.T, b *bench) {
	lock := FamilyLock(t)
	b.startReady(t, "family", "family", lock, "stay")
	if alone(t, lock) {
		t.Fatal("nobody holds the lock although the family said that it is ready")
	}
	b.stop(t, "family", shortGrace)
	wantExit(t, b.exited(t, "family"), 128+9, 9)
	if !alone(t, lock) {
		t.Error("a descendant of the task still runs")
	}
}

// testExitEndsFamily has the first process end and leave its descendants behind.
func testExitEndsFamily(t *testing.T, b *bench) {
	lock := FamilyLock(t)
	b.start(t, "family", "family", lock, "leave")
	wantExit(t, b.exited(t, "family"), 6, 0)
	if !alone(t, lock) {
		t.Error("a descendant of the task still runs")
	}
}

// testExitWithNoDriver has a task end while no driver is there.
func testExitWithNoDriver(t *testing.T, b *bench) {
	gate, lock := filepath.Join(t.TempDir(), "gate"), filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	b.startReady(t, "alone", "gate", gate, lock, "9")
	b.reopen(t, func() {
		opened, err := os.OpenFile(gate, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		opened.Close()
		waitAlone(t, lock)
	})
	wantExit(t, b.exited(t, "alone"), 9, 0)
	if got, want := b.output(t, "alone", driver.Stdout), "ready\nthrough\n"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
}

// testSuffix names, after a family's lock, the lock that its test holds.
const testSuffix = ".test"

// FamilyLock returns a lock for a family to hold. What a driver cannot end of the family ends with the test, even if
// that is killed.
func FamilyLock(t *testing.T) string {
	t.Helper()
	lock := filepath.Join(t.TempDir(), "lock")
	own, err := os.Create(lock + testSuffix)
	if err == nil {
		err = syscall.Flock(int(own.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		own.Close()
		waitAlone(t, lock)
	})
	return lock
}

// alone tells whether no process holds the lock that a program took.
func alone(t *testing.T, path string) bool {
	t.Helper()
	err := lockFile(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && err != syscall.EWOULDBLOCK {
		t.Fatalf("locking %s: %v", path, err)
	}
	return err == nil
}

// waitAlone returns when no process holds the lock any more.
func waitAlone(t *testing.T, path string) {
	t.Helper()
	if err := lockFile(path, syscall.LOCK_EX); err != nil {
		t.Fatalf("locking %s: %v", path, err)
	}
}

// lockFile takes and releases a lock.
func lockFile(path string, how int) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), how)
}

// skipBounded skips a test of the end of a task that takes too much, where the file system refuses that before.
func skipBounded(t *testing.T, b *bench) {
	t.Helper()
	if d, ok := b.Driver.(interface{ Unbounded() error }); ok && d.Unbounded() == nil {
		t.Skip("quotas of the file system keep the limits of the disk here")
	}
}

// testDiskLimit has a task take more of the disk than it may, beside one that does not.
func testDiskLimit(t *testing.T, b *bench) {
	skipBounded(t, b)
	limited := func(id string, bytes string) {
		task := b.task(id, "fill", bytes)
		task.Limits.DiskBytes, task.Limits.DiskBytesAsked = 1<<20, 1<<30
		b.startTask(t, task)
	}
	limited("modest", "500000")
	b.ready(t, "modest")
	limited("filler", "3000000")
	got := b.exited(t, "filler")
	if got.Signal != 9 || got.ExitCode != 128+9 || got.Error != "" ||
		!strings.HasPrefix(got.OutOfDisk, "it had taken ") || !strings.Contains(got.OutOfDisk, "1.0 MiB") {
		t.Errorf("got %+v, want it killed for want of disk", got)
	}
	if got := b.status("modest"); got.State != driver.Running {
		t.Errorf("its neighbour: %+v", got)
	}
	b.reopen(t, func() {})
	if again := b.status("filler"); again.OutOfDisk != got.OutOfDisk {
		t.Errorf("a new driver finds %+v, want %+v", again, got)
	}
	b.stop(t, "modest", longGrace)
	wantExit(t, b.exited(t, "modest"), 128+15, 15)
	limited("later", "500000")
	b.ready(t, "later")
	b.reopen(t, func() {})
	_, _ = b.Exec(b.ctx, b.task("later", "fill", "3000000"), driver.Session{}) // ends with the task
	if got := b.exited(t, "later"); got.OutOfDisk == "" {
		t.Errorf("a task of an earlier driver, beside which a program took too much: %+v", got)
	}
}

// testVolumesLimit has a task take more in its volume than it may; what it took stays.
func testVolumesLimit(t *testing.T, b *bench) {
	skipBounded(t, b)
	task := b.task("hoarder", "fill", "3000000")
	task.Volumes = []driver.Volume{{Set: "own", Name: "data", Variable: "DATA"}}
	task.Limits.VolumesBytes = 1 << 20
	b.startTask(t, task)
	if got := b.exited(t, "hoarder"); got.Signal != 9 || !strings.Contains(got.OutOfDisk, "its volumes had taken ") {
		t.Errorf("got %+v, want it killed for what its volume takes", got)
	}
	if bytes, err := b.VolumeBytes(b.ctx, "own"); err != nil || bytes["data"] < 3_000_000 {
		t.Errorf("got %v, %v of its volume, want that it stays", bytes, err)
	}
}
