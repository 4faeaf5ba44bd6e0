package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/driver"
	"starling/driver/drivertest"
	"starling/driver/output"
	"starling/driver/process"
)

// TestSupervisorKilled kills a supervisor under a task with descendants.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock := drivertest.FamilyLock(t)
	b.run(t, "family", programWord, "family", lock, "stay")
	b.ready(t, "family")
	if err := syscall.Kill(b.supervisor(t, "family"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantLost(t, b.exited(t, "family"), "the supervisor was killed")
	if !b.findsRemains() {
		t.Log("not checked: a descendant that left the process group; the driver warns of it")
	} else if !alone(t, lock) {
		t.Error("a descendant of the task still runs")
	}
	b.reopen(t, func() {})
	wantLost(t, b.status("family"), "the supervisor was killed")
}

// findsRemains tells whether the driver does not warn that processes may survive their supervisor.
func (b *bench) findsRemains() bool {
	for _, line := range b.Warnings() {
		if strings.Contains(line, "survives") {
			return false
		}
	}
	return true
}

func (b *bench) reopen(t testing.TB, between func()) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	between()
	b.Driver = open(t, b.folder)
}

// TestSupervisorKilledUnseen kills a supervisor while no driver is there.
func TestSupervisorKilledUnseen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock := drivertest.FamilyLock(t)
	b.run(t, "family", programWord, "family", lock, "stay")
	b.ready(t, "family")
	supervisor := b.supervisor(t, "family")
	b.reopen(t, func() {
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	})
	wantLost(t, b.exited(t, "family"), "the supervisor was killed")
	if b.findsRemains() && !alone(t, lock) {
		t.Error("a descendant of the task still runs")
	}
}

// TestStartIsNotRepeated kills a supervisor before it has recorded that the program runs, and the driver with it: the
// program may have begun, so the task has ended.
func TestStartIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(t, "begun", programWord, "terminate", "0")
	b.ready(t, "begun")
	supervisor := b.supervisor(t, "begun")
	b.reopen(t, func() {
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(b.folder, "tasks", "begun", "started.json")); err != nil {
			t.Fatal(err)
		}
	})
	wantLost(t, b.exited(t, "begun"), "the supervisor was killed")
}

// TestMachineRestarted opens a folder that was written before the machine restarted, as far as it can tell.
func TestMachineRestarted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(t, "running", programWord, "run")
	b.run(t, "ended", programWord, "exit", "3")
	ended := b.exited(t, "ended")
	b.stop(t, "running", 0)
	b.exited(t, "running")
	b.reopen(t, func() {
		for _, id := range []string{"running", "ended"} {
			path := filepath.Join(b.folder, "tasks", id, "origin.json")
			if err := os.WriteFile(path, []byte(`{"Boot":"another"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(b.folder, "tasks", "running", "ended.json")); err != nil {
			t.Fatal(err)
		}
	})
	wantLost(t, b.status("running"), "the machine restarted")
	if got := b.status("ended"); got.ExitCode != 3 || !got.EndedAt.Equal(ended.EndedAt) || got.Error != "" {
		t.Errorf("got %+v, want %+v as before", got, ended)
	}
}

// hold is a process that has a driver: it starts task after task, and says so, until it is killed.
func hold(folder string) {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	d, err := process.Open(process.Config{Dir: folder, Supervisor: []string{binary, superviseWord}})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		lock := fmt.Sprintf("%s.%03d", folder, i)
		task := driver.Task{ID: fmt.Sprintf("task[%03d]", i),
			Command: []string{binary, programWord, "gate", lock + ".gate", lock, "0"}}
		if err := syscall.Mkfifo(lock+".gate", 0o600); err != nil {
			panic(err)
		}
		fmt.Println("starting", task.ID)
		if err := d.Start(context.Background(), task); err != nil {
			panic(err)
		}
		fmt.Println("started", task.ID)
	}
}

// TestPeerKilled kills the process that has the driver, at points all over a start. Tasks for which Start returned go
// on; of one for which it did not either all is there or nothing.
func TestPeerKilled(t *testing.T) {
	t.Parallel()
	for range 12 {
		peerKilled(t)
	}
}

func peerKilled(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "driver")
	confirmed := killPeer(t, folder)
	b := &bench{folder: folder, Driver: open(t, folder)}
	defer b.Close()
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	for id, started := range confirmed {
		lock := folder + "." + strings.TrimSuffix(strings.TrimPrefix(id, "task["), "]")
		if b.status(id).State != 0 {
			b.endHeld(t, id, lock)
			continue
		}
		if started {
			t.Errorf("%s was started and is lost; there are %+v", id, b.Tasks())
		}
		if !alone(t, lock) {
			t.Errorf("%s is not in Tasks and runs", id)
		}
	}
}

// killPeer returns, by the ID of each task, whether Start had returned when the peer was killed.
func killPeer(t *testing.T, folder string) map[string]bool {
	peer := exec.Command(testBinary(t), holdWord, folder)
	peer.Stderr = os.Stderr
	said, err := peer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Start(); err != nil {
		t.Fatal(err)
	}
	confirmed := map[string]bool{}
	kill := time.NewTimer(time.Hour)
	for lines := bufio.NewScanner(said); lines.Scan(); {
		word, id, _ := strings.Cut(lines.Text(), " ")
		confirmed[id] = word == "started"
		if id == "task[001]" && word == "starting" {
			delay := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
			kill = time.AfterFunc(delay, func() { _ = peer.Process.Kill() })
		}
	}
	kill.Stop()
	_ = peer.Wait() // it was killed
	return confirmed
}

// endHeld checks that a task goes on that a killed peer started, and ends it.
func (b *bench) endHeld(t *testing.T, id, lock string) {
	if got := b.status(id); got.State != driver.Running || got.PID == 0 {
		t.Errorf("%s: got %+v, want running", id, got)
	}
	b.ready(t, id)
	if alone(t, lock) {
		t.Errorf("%s: it does not run", id)
	}
	b.stop(t, id, 0)
	if got := b.exited(t, id); got.Signal != int(syscall.SIGKILL) && got.Signal != int(syscall.SIGTERM) {
		t.Errorf("%s: got %+v, want a signal", id, got)
	}
	if !alone(t, lock) {
		t.Errorf("%s: it still runs", id)
	}
}

// TestLeftovers opens a folder with what a driver leaves behind that is killed within Start.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tasks := filepath.Join(b.folder, "tasks")
	b.reopen(t, func() {
		for _, name := range []string{"empty", "unborn", "Not%a%folder"} {
			if err := os.Mkdir(filepath.Join(tasks, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(tasks, "unborn", "alive"), 0o600); err != nil {
			t.Fatal(err)
		}
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Skip("this system does not name its boots in /proc")
		}
		record := fmt.Sprintf(`{"Boot":%q,"Group":"task-unborn"}`, strings.TrimSpace(string(boot)))
		if err := os.WriteFile(filepath.Join(tasks, "unborn", "origin.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if got := b.Tasks(); len(got) != 0 {
		t.Errorf("got %+v, want no tasks", got)
	}
	left, err := os.ReadDir(tasks)
	if err != nil || len(left) != 1 || left[0].Name() != "Not%a%folder" {
		t.Errorf("left are %v (%v), want only what no driver made", left, err)
	}
	if warnings := strings.Join(b.Warnings(), "\n"); !strings.Contains(warnings, "Not%a%folder") {
		t.Errorf("got the warnings %q, want one of Not%%a%%folder", warnings)
	}
	b.run(t, "unborn", programWord, "exit", "0")
	b.exited(t, "unborn")
}

// TestOneDriver opens a folder that another driver has.
func TestOneDriver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if d, err := process.Open(process.Config{Dir: b.folder, Supervisor: []string{b.binary, superviseWord}}); err == nil {
		d.Close()
		t.Error("two drivers have one folder")
	} else if !strings.Contains(err.Error(), "another driver") {
		t.Errorf("got error %v, want it to name the other driver", err)
	}
}

// TestSupervisorBroken has supervisors that never own their task.
func TestSupervisorBroken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script      string
		testTimeout time.Duration
		want        string
	}{
		"ends":  {"echo out of order >&2", testTimeout, "out of order"},
		"hangs": {"exec sleep 1000", 50 * time.Millisecond, context.DeadlineExceeded.Error()},
	} {
		folder := t.TempDir()
		d, err := process.Open(process.Config{Dir: folder, Supervisor: []string{"/bin/sh", "-c", test.script}})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx, cancel := context.WithTimeout(context.Background(), test.testTimeout)
		defer cancel()
		err = d.Start(ctx, driver.Task{ID: "task", Command: []string{"/bin/true"}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q", name, err, test.want)
		}
		if got := d.Tasks(); len(got) != 0 {
			t.Errorf("%s: got %+v, want no tasks", name, got)
		}
		if left, err := os.ReadDir(filepath.Join(folder, "tasks")); err != nil || len(left) != 0 {
			t.Errorf("%s: left are %v (%v), want nothing", name, left, err)
		}
	}
}

// TestRecordLater has the record of an end find no place for a while.
func TestRecordLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(t, "task", programWord, "terminate", "7")
	b.ready(t, "task")
	folder := filepath.Join(b.folder, "tasks", "task")
	obstacle := filepath.Join(folder, "ended.json")
	if err := errors.Join(os.Remove(obstacle), os.Mkdir(obstacle, 0o700)); err != nil {
		t.Fatal(err)
	}
	growth, err := output.WatchGrowth()
	if err != nil {
		t.Fatal(err)
	}
	defer growth.Close()
	grown := growth.Subscribe(folder)
	b.stop(t, "task", time.Hour)
	for words := []byte(nil); len(words) == 0; { // until the supervisor says that it could not
		select {
		case <-grown.Grown():
		case <-b.ctx.Done():
			t.Fatal("the supervisor did not complain")
		}
		if words, err = os.ReadFile(filepath.Join(folder, "supervisor.log")); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.status("task"); got.State != driver.Running {
		t.Errorf("got %+v, want it to be running as long as its end is not recorded", got)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if got := b.exited(t, "task"); got.ExitCode != 7 || got.Error != "" {
		t.Errorf("got %+v, want the exit code 7", got)
	}
}

// TestTaskEndsThatNoDriverComesBackTo leaves a task alone for as long as the last driver has said, after one that came
// back in time.
func TestTaskEndsThatNoDriverComesBackTo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	open := func() *process.Driver {
		d, err := process.Open(process.Config{Dir: folder, Hidden: folder, Unattended: 2 * time.Second,
			Supervisor: []string{testBinary(t), superviseWord}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	task := driver.Task{ID: "left", Command: []string{testBinary(t), programWord, "run"}}
	d := open()
	if err := d.Start(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	left := time.Now()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d = open(); d.Tasks()[0].State != driver.Running {
		t.Fatalf("got %+v after %v, want it to run", d.Tasks()[0], time.Since(left))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	alive, err := os.Open(filepath.Join(folder, "tasks", "left", "alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if _, err := io.Copy(io.Discard, alive); err != nil { // until its supervisor has ended
		t.Fatal(err)
	}
	d = open()
	defer d.Close()
	if got := d.Tasks()[0]; !got.Unproved || got.Error != "it was stopped because no agent was there for 2s" {
		t.Errorf("got %+v, want that nobody wanted it", got)
	}
}

// TestLogsWhileForgotten reads what tasks have written while they are forgotten: that moves it.
func TestLogsWhileForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 20 {
		id := fmt.Sprint("task-", i)
		b.start(t, driver.Task{ID: id, Command: []string{"/bin/sh", "-c", "echo written; exit 3"}})
		b.exited(t, id)
		forgotten := make(chan error, 1)
		go func() { forgotten <- b.Forget(id) }()
		for ends := false; !ends; {
			if said := b.output(t, id, driver.Stdout); said != "written\n" {
				t.Fatalf("got %q", said)
			}
			select {
			case err := <-forgotten:
				if ends = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
	}
}
