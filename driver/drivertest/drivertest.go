// Package drivertest is the contract of driver.Driver as a suite that every driver passes.
//
// The programs that its tasks run are verbs of [Program]: a driver that runs real processes runs the test binary
// again, a scripted one plays the same verbs.
package drivertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"starling/driver"
)

// testTimeout is how long the suite waits for what must happen; only a failing test ever waits so long.
const testTimeout = 30 * time.Second

// longGrace is a grace period that no test outlives: a task that ends within it was not killed.
const longGrace = time.Hour

// shortGrace is a grace period that a test waits for.
const shortGrace = 20 * time.Millisecond

// Machine is what the suite runs a driver on.
type Machine struct {
	// Open returns a driver over folder. A later one over the same folder finds the tasks of an earlier one, which
	// the suite has closed.
	Open func(t *testing.T, folder string) driver.Driver
	// Command is put before a verb of Program and its arguments.
	Command []string
	// Container is what all tasks run in; nil for processes of the machine.
	Container *driver.Container
	// Scripted says that no real processes run: what is about processes and folders is left out.
	Scripted bool
}

// Test runs the contract suite.
func Test(t *testing.T, m Machine) {
	contract := map[string]func(*testing.T, *bench){
		"ExitCode":        testExitCode,
		"Signal":          testSignal,
		"StartTwice":      testStartTwice,
		"NotFound":        testNotFound,
		"Refused":         testRefused,
		"StopGraceful":    testStopGraceful,
		"StopByDefault":   testStopByDefault,
		"StopKills":       testStopKills,
		"StopSooner":      testStopSooner,
		"StopIgnored":     testStopIgnored,
		"Forget":          testForget,
		"Tasks":           testTasks,
		"Changed":         testChanged,
		"Streams":         testStreams,
		"Tail":            testTail,
		"Follow":          testFollow,
		"FollowGivesUp":   testFollowGivesUp,
		"LogsUnknown":     testLogsUnknown,
		"LogsForgotten":   testLogsForgotten,
		"Names":           testNames,
		"SurvivesRunning": testSurvivesRunning,
		"SurvivesExited":  testSurvivesExited,
		"VolumeSets":      testVolumeSets,
		"ReceivesVolumes": testReceivesVolumes,
		"Usage":           testUsage,
		"FilesVersion":    testFilesVersion,
		"RunNotRunning":   testRunNotRunning,
		"Unproved":        testUnproved,
		"UnprovedKills":   testUnprovedKills,
		"UnprovedStart":   testUnprovedStart,
		"UnprovedAlone":   testUnprovedAlone,
		"Proved":          testProved,
		"ProvedIgnored":   testProvedIgnored,
	}
	if !m.Scripted {
		for name, test := range processContract() {
			contract[name] = test
		}
	}
	for name, test := range contract {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, m))
		})
	}
}

// bench is one driver under test and the words the tests use for it.
type bench struct {
	driver.Driver
	machine Machine
	folder  string
	ctx     context.Context
}

func newBench(t *testing.T, m Machine) *bench {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	b := &bench{machine: m, folder: t.TempDir(), ctx: ctx}
	b.Driver = m.Open(t, b.folder)
	t.Cleanup(func() {
		defer cancel()
		b.stopAll(t)
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// stopAll ends what the test left running.
func (b *bench) stopAll(t *testing.T) {
	for _, s := range b.Tasks() {
		if err := b.Stop(s.ID, 0); err != nil {
			t.Errorf("Stop(%q): %v", s.ID, err)
		}
	}
	b.until(t, "all tasks ended", func() bool {
		for _, s := range b.Tasks() {
			if s.State != driver.Exited {
				return false
			}
		}
		return true
	})
}

// reopen replaces the driver by a new one over the same folder, with whatever happens in between.
func (b *bench) reopen(t *testing.T, between func()) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	between()
	b.Driver = b.machine.Open(t, b.folder)
}

// task is a task that runs a verb of Program.
func (b *bench) task(id string, verb ...string) driver.Task {
	return driver.Task{ID: id, Command: append(append([]string{}, b.machine.Command...), verb...),
		Container: b.machine.Container}
}

// start starts a task that runs a verb.
func (b *bench) start(t *testing.T, id string, verb ...string) {
	t.Helper()
	b.startTask(t, b.task(id, verb...))
}

func (b *bench) startTask(t *testing.T, task driver.Task) {
	t.Helper()
	task.Container = b.machine.Container
	if err := b.Start(b.ctx, task); err != nil {
		t.Fatalf("Start(%q): %v", task.ID, err)
	}
}

// startReady starts a task and returns when it has said that it is ready.
func (b *bench) startReady(t *testing.T, id string, verb ...string) {
	t.Helper()
	b.start(t, id, verb...)
	b.ready(t, id)
}

// ready returns when the task has written the line "ready".
func (b *bench) ready(t *testing.T, id string) {
	t.Helper()
	if line, err := b.firstLine(t, id); line != "ready\n" {
		t.Fatalf("the task %q wrote %q (%v), want ready; it is %+v", id, line, err, b.status(id))
	}
}

// firstLine waits for the first line that the task writes, or for its end.
func (b *bench) firstLine(t *testing.T, id string) (string, error) {
	t.Helper()
	log := b.logs(t, id, driver.LogOptions{Stream: driver.Stdout, Follow: true, TailBytes: -1})
	defer log.Close()
	return bufio.NewReader(log).ReadString('\n')
}

func (b *bench) stop(t *testing.T, id string, grace time.Duration) {
	t.Helper()
	if err := b.Stop(id, grace); err != nil {
		t.Fatalf("Stop(%q): %v", id, err)
	}
}

func (b *bench) forget(t *testing.T, id string) {
	t.Helper()
	if err := b.Forget(id); err != nil {
		t.Fatalf("Forget(%q): %v", id, err)
	}
}

// status is the task's status, or the zero one if the driver does not have it.
func (b *bench) status(id string) driver.Status {
	for _, s := range b.Tasks() {
		if s.ID == id {
			return s
		}
	}
	return driver.Status{}
}

// exited waits for the end of the task.
func (b *bench) exited(t *testing.T, id string) driver.Status {
	t.Helper()
	b.until(t, id+" exited", func() bool { return b.status(id).State == driver.Exited })
	return b.status(id)
}

// until waits for a condition on Tasks, looking again whenever the driver says that they changed.
func (b *bench) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-b.Changed():
		case <-b.ctx.Done():
			t.Fatalf("not within %v: %s; tasks are %+v", testTimeout, what, b.Tasks())
		}
	}
}

func (b *bench) logs(t *testing.T, id string, o driver.LogOptions) io.ReadCloser {
	t.Helper()
	log, err := b.Logs(b.ctx, id, o)
	if err != nil {
		t.Fatalf("Logs(%q): %v", id, err)
	}
	return log
}

// output is all that is kept of a stream now.
func (b *bench) output(t *testing.T, id string, stream driver.Stream) string {
	t.Helper()
	return read(t, b.logs(t, id, driver.LogOptions{Stream: stream, TailBytes: -1}))
}

func read(t *testing.T, log io.ReadCloser) string {
	t.Helper()
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatalf("reading a log: %v", err)
	}
	return string(text)
}

// wantExit checks how a task ended.
func wantExit(t *testing.T, got driver.Status, code, signal int) {
	t.Helper()
	if got.State != driver.Exited || got.ExitCode != code || got.Signal != signal || got.Error != "" || got.OutOfMemory {
		t.Errorf("got %+v, want exited with code %d and signal %d", got, code, signal)
	}
	if got.PID != 0 || got.StartedAt.IsZero() || got.EndedAt.Before(got.StartedAt) {
		t.Errorf("got %+v, want no PID, a start and an end after it", got)
	}
}

// wantFailure checks that a task never ran, and that the reason names what it must.
func wantFailure(t *testing.T, got driver.Status, words ...string) {
	t.Helper()
	if got.State != driver.Exited || got.ExitCode != driver.NoExitCode || got.Error == "" || got.EndedAt.IsZero() {
		t.Errorf("got %+v, want exited with an error and no exit code", got)
	}
	for _, word := range words {
		if !strings.Contains(got.Error, word) {
			t.Errorf("the error %q does not say %q", got.Error, word)
		}
	}
}

func wantNotExist(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want os.ErrNotExist", err)
	}
}
