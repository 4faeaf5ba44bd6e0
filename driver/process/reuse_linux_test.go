package process_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"starling/driver"
)

// short is a task whose supervisor may own another one later.
func short(id, script string) driver.Task {
	return driver.Task{ID: id, Command: []string{"/bin/sh", "-c", script}, User: driver.OwnUser("task"),
		Env: []string{"PATH=/bin:/usr/bin", "PASSWORD=xyzzy-plugh"}, Limits: driver.Limits{MemoryBytes: 1 << 30}}
}

// newReuse is a bench whose supervisors own one task after another.
func newReuse(t *testing.T) *bench {
	t.Helper() // what other tests mount at the same time would end those that wait
	if os.Getuid() != 0 {
		t.Skip("only with namespaces")
	}
	b := newBench(t)
	b.reopen(t, func() { b.folder = filepath.Join(openFolder(t), "driver") })
	return b
}

// runShort runs a task to its end, which is to be good, and returns the number of its supervisor.
func (b *bench) runShort(t *testing.T, id, script string) (supervisor int) {
	t.Helper()
	b.start(t, short(id, script))
	if got := b.exited(t, id); got.ExitCode != 0 || got.Error != "" {
		t.Fatalf("%s: got %+v, want that it succeeds: %s", id, got, b.output(t, id, driver.Stderr))
	}
	return b.supervisor(t, id)
}

// await looks until something is so.
func (b *bench) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-b.ctx.Done():
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

// bare lists what a process that waits for a task has: its open files, and what its threads are in and may do.
func bare(t *testing.T, pid int) map[string]int {
	t.Helper()
	all := map[string]int{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		leads, _ := os.Readlink(file)
		kind, _, _ := strings.Cut(leads, "[")
		all[kind]++
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		for _, name := range []string{"ns/mnt", "ns/ipc", "ns/pid", "cwd", "root"} {
			if leads, err := os.Readlink(filepath.Join(thread, name)); err == nil { // it may have ended
				all["a thread has "+name+" "+leads] = 1
			}
		}
		for _, name := range []string{"status", "cgroup"} {
			text, _ := os.ReadFile(filepath.Join(thread, name))
			for line := range strings.Lines(string(text)) {
				word, _, _ := strings.Cut(line, ":")
				if name == "cgroup" || slices.Contains([]string{"Umask", "Uid", "Gid", "Groups", "SigPnd", "SigIgn", "SigCgt",
					"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"}, word) {
					all["a thread has "+line] = 1
				}
			}
		}
	}
	return all
}

// TestSupervisorIsUsedAgain has one own several tasks, and looks after each at what it has: it is no more after many
// than after two, with which it prepares mounts for all that follow, and no thread is confined.
func TestSupervisorIsUsedAgain(t *testing.T) {
	b := newReuse(t)
	after := map[int]map[string]int{} // the second task, by supervisor
	first := map[int]bool{}
	used := 0
	for i := range 20 {
		supervisor := b.runShort(t, fmt.Sprintf("task-%d", i), "umask 077; exec sleep 0")
		var has map[string]int
		b.await(t, "no thread of the supervisor is confined", func() bool {
			has = bare(t, supervisor)
			return has["a thread has NoNewPrivs:\t1\n"] == 0
		})
		if has["a thread has Seccomp:\t0\n"] == 0 || has["/dev/null"] == 0 || has["socket:"] == 0 {
			continue // it has ended, because this machine is slow
		}
		if !first[supervisor] {
			first[supervisor] = true
			continue
		}
		if after[supervisor] == nil {
			after[supervisor] = has
			continue
		}
		used++
		last := has
		b.await(t, "it has what it had after its second task, or has ended", func() bool {
			if has = bare(t, supervisor); has["socket:"] > 0 {
				last = has
			}
			return maps.Equal(has, after[supervisor]) || has["socket:"] == 0
		})
		for what, count := range last { // there is less while it ends
			if before := after[supervisor][what]; count > before {
				t.Errorf("after another task it has %d times %q, want %d", count, what, before)
			}
		}
	}
	if used == 0 {
		t.Error("no supervisor owned a third task")
	}
}

// TestNothingIsLeftForTheNextTask has a task leave what one can leave, and the next look for it.
func TestNothingIsLeftForTheNextTask(t *testing.T) {
	b := newReuse(t)
	leave := `echo x >/dev/shm/left; ipcmk -M 4096 >/dev/null; ipcmk -Q >/dev/null; ipcs -m | grep -q 0x
		ulimit -n 32; setsid sleep 1000 >/dev/null 2>&1 &`
	look := `finds() { echo "finds $1" >&2; exit 1; }
		test -z "$(ls /dev/shm)" || finds files
		ipcs -m | grep 0x && finds memory
		ipcs -q | grep 0x && finds queues
		grep sleep /proc/[0-9]*/comm && finds processes
		test "$(ulimit -n)" != 32 || finds limits
		tr '\0' ' ' </proc/1/cmdline | grep task- && finds names
		cat /proc/1/environ && finds variables
		ls /proc/1/fd && finds open files
		head -c 1 /proc/1/mem && finds memory
		exit 0`
	for i := range 10 {
		leaver := b.runShort(t, fmt.Sprintf("task-%d", 2*i), leave)
		looker := b.runShort(t, fmt.Sprintf("task-%d", 2*i+1), look)
		if leaver == looker {
			return
		}
	}
	t.Error("no supervisor owned a second task")
}

// TestRootsSupervisorIsNotUsedAgain runs tasks of root, which may change what a process of root may do.
func TestRootsSupervisorIsNotUsedAgain(t *testing.T) {
	b := newReuse(t)
	owned := map[int]bool{}
	for i := range 10 {
		id := fmt.Sprintf("root-%d", i)
		b.start(t, driver.Task{ID: id, Command: []string{"/bin/true"}})
		b.exited(t, id)
		supervisor := b.supervisor(t, id)
		if owned[supervisor] {
			t.Errorf("the supervisor %d owned a second task", supervisor)
		}
		owned[supervisor] = true
	}
}

// TestIdleSupervisorKilled kills supervisors that wait for a task: the next ones start, each once.
func TestIdleSupervisorKilled(t *testing.T) {
	b := newReuse(t)
	log := filepath.Join(openFolder(t), "log")
	if err := errors.Join(os.WriteFile(log, nil, 0o666), os.Chmod(log, 0o666)); err != nil {
		t.Fatal(err)
	}
	const many = 10
	for i := range many {
		supervisor := b.runShort(t, fmt.Sprintf("task-%d", i), fmt.Sprintf("echo %d >>%s", i, log))
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(log)
	if lines := strings.Count(string(text), "\n"); err != nil || lines != many {
		t.Errorf("got %d starts (%v), want %d: %q", lines, err, many, text)
	}
}

// TestIdleSupervisorsEnd wants none to be there after a while, and none without its driver.
func TestIdleSupervisorsEnd(t *testing.T) {
	b := newReuse(t)
	gone := func(pid int) func() bool {
		return func() bool {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return len(text) == 0 || strings.Contains(string(text), ") Z ")
		}
	}
	b.await(t, "a supervisor that waits in vain ends", gone(b.runShort(t, "waits", "true")))
	idle := b.runShort(t, "closed", "true")
	b.reopen(t, func() {
		b.await(t, "an idle supervisor ends with its driver", gone(idle))
	})
	b.start(t, short("busy", "echo ready; sleep 1000"))
	b.ready(t, "busy")
	busy := b.supervisor(t, "busy")
	b.reopen(t, func() {})
	if got := b.status("busy"); got.State != driver.Running {
		t.Errorf("got %+v, want that the task goes on without its driver", got)
	}
	b.stop(t, "busy", 0)
	b.exited(t, "busy")
	b.await(t, "the supervisor ends with a task that another driver has", gone(busy))
}

// TestOldRecordEndsNoOtherTask opens the folder again while a supervisor owns a second task, and one of its first is
// there, whose record of its end is lost.
func TestOldRecordEndsNoOtherTask(t *testing.T) {
	b := newReuse(t)
	for i := range 10 {
		old, now := fmt.Sprintf("old-%d", i), fmt.Sprintf("now-%d", i)
		first := b.runShort(t, old, "true")
		b.start(t, short(now, "echo ready; sleep 1000"))
		b.ready(t, now)
		second := b.supervisor(t, now)
		if second != first {
			b.stop(t, now, 0)
			b.exited(t, now)
			continue
		}
		b.reopen(t, func() {
			names, err := filepath.Glob(filepath.Join(b.folder, "tasks", "old*", "ended.json"))
			for _, name := range names {
				err = errors.Join(err, os.Remove(name))
			}
			if err != nil || len(names) == 0 {
				t.Errorf("delete %q: %v", names, err)
			}
		})
		if got := b.status(now); got.State != driver.Running {
			t.Errorf("got %+v, want that the second task runs", got)
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", second)); err != nil {
			t.Errorf("its supervisor was killed: %v", err)
		}
		b.stop(t, now, 0)
		b.exited(t, now)
		wantLost(t, b.exited(t, old), "the supervisor was killed")
		for _, s := range b.Tasks() {
			b.exited(t, s.ID)
		}
		return
	}
	t.Error("no supervisor owned a second task")
}

// TestWhatRunsBesideATaskEndsBeforeTheNext runs a program beside a task, which ends meanwhile: no later task finds it.
func TestWhatRunsBesideATaskEndsBeforeTheNext(t *testing.T) {
	b := newReuse(t)
	for i := range 10 {
		id := fmt.Sprintf("task-%d", i)
		b.start(t, short(id, "echo ready; exec cat /dev/zero >/dev/null"))
		b.ready(t, id)
		beside := short(id, "echo begun; exec sleep 1000")
		begun, output, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		running.Go(func() {
			defer output.Close()
			_, _ = b.Exec(b.ctx, beside, driver.Session{Output: output}) // it is killed with the task
		})
		if _, err := begun.Read(make([]byte, 1)); err != nil {
			t.Errorf("the program beside the task has not begun: %v", err)
		}
		b.stop(t, id, 0)
		b.exited(t, id)
		b.runShort(t, id+"-next", "! grep sleep /proc/[0-9]*/comm")
		running.Wait()
		begun.Close()
	}
}
