package process_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver"
)

// nobody is an account that may do little.
const nobody = 65534

// needLimit skips the test if the machine does not enforce a limit.
func (b *bench) needLimit(t *testing.T, of string) {
	t.Helper()
	for _, line := range b.Warnings() {
		if strings.Contains(line, "limits of "+of) {
			t.Skip(line)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.needLimit(t, "memory")
	b.start(t, driver.Task{ID: "eater", Command: []string{b.binary, eatWord, "parent"},
		Limits: driver.Limits{MemoryBytes: 64 << 20}})
	got := b.exited(t, "eater")
	if !got.OutOfMemory || got.Signal != 9 || got.ExitCode != 137 || got.Error != "" {
		t.Errorf("got %+v, want it killed for want of memory", got)
	}
	b.reopen(t, func() {})
	if got := b.status("eater"); !got.OutOfMemory {
		t.Errorf("a new driver finds %+v, want it killed for want of memory", got)
	}
}

// groupFile reads a file of the control group that a process is in.
func groupFile(t *testing.T, pid int, controller, v1, v2 string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		path := ""
		switch {
		case slices.Contains(strings.Split(fields[1], ","), controller):
			path = filepath.Join("/sys/fs/cgroup", controller, fields[2], v1)
		case fields[1] == "":
			path = filepath.Join("/sys/fs/cgroup", fields[2], v2)
		}
		if value, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(value))
		}
	}
	t.Fatalf("no control group of process %d limits %s:\n%s", pid, controller, text)
	return ""
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, of := range []string{"memory", "processor time", "the number of processes"} {
		b.needLimit(t, of)
	}
	b.start(t, driver.Task{
		ID: "bound", Command: []string{b.binary, programWord, "run"},
		Limits: driver.Limits{CPUMillicores: 250, MemoryBytes: 256 << 20, Processes: 40},
	})
	b.start(t, driver.Task{ID: "yielding", Command: []string{b.binary, programWord, "run"},
		Limits: driver.Limits{CPUMillicores: 2000, Background: true}})
	if got := groupFile(t, b.status("yielding").PID, "cpu", "cpu.shares", "cpu.weight"); got != "2" && got != "1" {
		t.Errorf("what others come before has the weight %s, want the least", got)
	}
	pid := b.status("bound").PID
	for _, test := range []struct{ controller, v1, v2, want string }{
		{"cpu", "cpu.cfs_quota_us", "cpu.max", "25000"},
		{"memory", "memory.limit_in_bytes", "memory.max", strconv.Itoa(256 << 20)},
		{"pids", "pids.max", "pids.max", "40"},
	} {
		if got, _, _ := strings.Cut(groupFile(t, pid, test.controller, test.v1, test.v2), " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.controller, got, test.want)
		}
	}
	b.start(t, driver.Task{ID: "alone", Command: []string{"/bin/sh", "-c", "/bin/true; /bin/true"},
		Limits: driver.Limits{Processes: 1}})
	if got := b.exited(t, "alone"); got.ExitCode == 0 || got.Error != "" {
		t.Errorf("a second process was not refused: %+v, %q", got, b.output(t, "alone", driver.Stderr))
	}
}

// TestNoGroupsLeft looks for control groups of ended tasks.
func TestNoGroupsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(t, "unmistakable-name", programWord, "run")
	b.stop(t, "unmistakable-name", 0)
	b.exited(t, "unmistakable-name")
	for _, path := range groupsNamed("unmistakable-name") {
		t.Errorf("left is %s", path)
	}
}

// groupsNamed lists the control groups in whose path the name is.
func groupsNamed(name string) (found []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, name) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.needLimit(t, "the number of processes")
	lock := filepath.Join(t.TempDir(), "lock")
	b.start(t, driver.Task{ID: "bomb", Command: []string{b.binary, bombWord, lock}, Limits: driver.Limits{Processes: 30}})
	b.ready(t, "bomb")
	if alone(t, lock) {
		t.Fatal("the bomb does not hold its lock")
	}
	b.stop(t, "bomb", 10*time.Millisecond)
	if got := b.exited(t, "bomb"); got.Signal != 9 {
		t.Errorf("got %+v, want it killed", got)
	}
	if !alone(t, lock) {
		t.Error("a part of the bomb still runs")
	}
}

// TestIsolation looks at the machine through a task's eyes.
func TestIsolation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	script := `exec 2>&1; ls /proc/self/fd; grep NoNewPrivs /proc/self/status; ls -d /proc/[0-9]* | wc -l; readlink /proc/self/ns/pid`
	b.start(t, driver.Task{ID: "eyes", Command: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}})
	if got := b.exited(t, "eyes"); got.ExitCode != 0 {
		t.Errorf("got %+v", got)
	}
	lines := strings.Fields(b.output(t, "eyes", driver.Stdout))
	if len(lines) != 8 {
		t.Fatalf("the task saw %q, want the files 0, 1, 2 and the one that lists them, and four words", lines)
	}
	if got := lines[5]; got != "1" {
		t.Errorf("NoNewPrivs is %s, want 1", got)
	}
	if os.Getuid() != 0 {
		return
	}
	// The supervisor, the shell and what it runs.
	if got, err := strconv.Atoi(lines[6]); err != nil || got > 4 {
		t.Errorf("the task saw %s processes, want no more than 4", lines[6])
	}
	if own, err := os.Readlink("/proc/self/ns/pid"); err != nil || lines[7] == own {
		t.Errorf("the task is in the namespace %s (%v), want another", own, err)
	}
}

// TestSharedMemory has a task leave shared memory by name: no other finds it, and it is gone with the task.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only with namespaces")
	}
	b := newBench(t)
	b.start(t, driver.Task{ID: "writer",
		Command: []string{"/bin/sh", "-c", "echo mine > /dev/shm/starling-test && cat /dev/shm/starling-test"}})
	if got := b.exited(t, "writer"); got.ExitCode != 0 || b.output(t, "writer", driver.Stdout) != "mine\n" {
		t.Errorf("got %+v, %q", got, b.output(t, "writer", driver.Stderr))
	}
	if _, err := os.Stat("/dev/shm/starling-test"); err == nil {
		t.Error("the machine has what the task left")
	}
	b.start(t, driver.Task{ID: "reader", Command: []string{"/bin/sh", "-c", "test ! -e /dev/shm/starling-test"}})
	if got := b.exited(t, "reader"); got.ExitCode != 0 {
		t.Errorf("another task finds what the first one left: %+v", got)
	}
}

// openFolder is a folder that every account may pass through.
func openFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "starling-process-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root may run tasks as somebody else")
	}
	b := newBench(t)
	b.reopen(t, func() { b.folder = filepath.Join(openFolder(t), "driver") })
	volumes := []driver.Volume{{Set: "db.main[0]@1", Name: "data", Variable: "DATA"}}
	b.start(t, driver.Task{ID: "root", Command: []string{"/bin/true"}, Volumes: volumes})
	b.exited(t, "root") // the volume is another's now
	script := `id -u; id -G; pwd > file && cat file; touch "$DATA/mine" && ls "$DATA"`
	b.start(t, driver.Task{
		ID: "other", Command: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, User: "nobody",
		Volumes: volumes,
	})
	b.exited(t, "other")
	want := fmt.Sprintf("%d\n%d\n%s\nmine\n", nobody, nobody, filepath.Join(b.folder, "tasks", "other", "work"))
	if got := b.output(t, "other", driver.Stdout); got != want {
		t.Errorf("got %q, want %q; %s", got, want, b.output(t, "other", driver.Stderr))
	}
	b.start(t, driver.Task{ID: "unknown", Command: []string{"/bin/true"}, User: "no-such-user"})
	if got := b.exited(t, "unknown"); !strings.Contains(got.Error, "no-such-user") {
		t.Errorf("got %+v, want an error that names the user", got)
	}
}

// TestSecrets looks for a task's environment in all that the driver stores.
func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(t, driver.Task{ID: "secretive", Command: []string{b.binary, programWord, "run"},
		Env: []string{"PASSWORD=xyzzy-plugh"}})
	b.ready(t, "secretive")
	err := filepath.WalkDir(b.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "xyzzy-plugh") {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	b.stop(t, "secretive", 0)
}

// TestMany starts many tasks at the same time and stops them.
func TestMany(t *testing.T) {
	t.Parallel()
	const many = 200
	b := newBench(t)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			task := driver.Task{ID: fmt.Sprintf("many[%d]", i), Command: []string{"/bin/sleep", "1000"}}
			if err := b.Start(b.ctx, task); err != nil {
				t.Errorf("Start: %v", err)
			}
		})
	}
	all.Wait()
	b.reopen(t, func() {})
	running := 0
	for _, s := range b.Tasks() {
		if s.State == driver.Running && s.PID > 0 {
			running++
		}
		b.stop(t, s.ID, time.Hour)
	}
	if running != many {
		t.Errorf("got %d running tasks, want %d", running, many)
	}
	for _, s := range b.Tasks() {
		if got := b.exited(t, s.ID); got.Signal != int(syscall.SIGTERM) {
			t.Errorf("got %+v, want it terminated", got)
		}
		if err := b.Forget(s.ID); err != nil {
			t.Errorf("Forget: %v", err)
		}
	}
}

// again runs tests of this binary in a process that may do less.
func again(t *testing.T, pattern string, attributes *syscall.SysProcAttr, prepare func() error) {
	t.Helper()
	folder := openFolder(t)
	binary := filepath.Join(folder, "process.test")
	if output, err := exec.Command("cp", testBinary(t), binary).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v, %s", err, output)
	}
	command := exec.Command(binary, "-test.run", pattern, "-test.timeout", "2m")
	command.Env = []string{"TMPDIR=" + folder, "PATH=/bin:/usr/bin"}
	command.Dir = folder
	command.SysProcAttr = attributes
	var output []byte
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: what prepare takes away from the thread does not come back
		err := prepare()
		if err == nil {
			output, err = command.CombinedOutput()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

const limited = "^(TestContract|TestEscapes|TestSupervisorKilled|TestSupervisorKilledUnseen|TestForkBomb|TestOutOfMemory|TestWarnings)$"

// TestUnprivileged runs the suite as a user who may make neither control groups nor namespaces.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("the suite itself ran without privileges")
	}
	again(t, limited, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
		func() error { return nil })
}

// TestWithoutNamespaces runs the suite as root in a process that may not make namespaces, as in many containers.
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("the suite itself ran without privileges")
	}
	again(t, limited, nil, func() error { return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0) })
}

// TestWarnings expects a warning for all that the process may not do.
func TestWarnings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	warnings := strings.Join(b.Warnings(), "\n")
	t.Logf("warnings:\n%s", warnings)
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	if may := sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0; may == strings.Contains(warnings, "namespaces") {
		t.Errorf("may make namespaces: %v, but the warnings are:\n%s", may, warnings)
	}
	if os.Getuid() == 0 {
		return
	}
	for _, of := range []string{"memory", "processor time", "the number of processes"} {
		if !strings.Contains(warnings, "limits of "+of+" are not enforced") {
			t.Errorf("no warning of limits of %s:\n%s", of, warnings)
		}
	}
}
