package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"starling/driver"
	"starling/driver/drivertest"
	"starling/driver/process"
	"starling/driver/scope"
)

// testTimeout is how long a test waits for what must happen.
const testTimeout = 30 * time.Second

// The words that make the test binary something else than tests.
const (
	superviseWord = "supervise"
	programWord   = "program"
	holdWord      = "hold"
	eatWord       = "eat"
	bombWord      = "bomb"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case superviseWord:
			os.Exit(process.Supervise(os.Args[2], nil))
		case programWord:
			os.Exit(drivertest.Program(os.Args[2:]))
		case holdWord:
			hold(os.Args[2])
		case eatWord:
			eat()
		case bombWord:
			bomb(os.Args[2])
		}
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // most of the time is spent in other processes
		panic(err)
	}
	os.Exit(m.Run())
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, folder string) *process.Driver {
	t.Helper()
	d, err := process.Open(process.Config{Dir: folder, Hidden: folder, Supervisor: []string{testBinary(t), superviseWord},
		LeaveScope: scope.Leave})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) {
	drivertest.Test(t, drivertest.Machine{
		Open:    func(t *testing.T, folder string) driver.Driver { return open(t, folder) },
		Command: []string{testBinary(t), programWord},
	})
}

// bench is a driver over a folder, and what tests do with it.
type bench struct {
	*process.Driver
	ctx    context.Context
	folder string
	binary string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchFor(t, testTimeout)
}

// newBenchFor returns one for a test that may take longer.
func newBenchFor(t testing.TB, timeout time.Duration) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	b := &bench{ctx: ctx, folder: t.TempDir(), binary: testBinary(t)}
	b.Driver = open(t, b.folder)
	t.Cleanup(func() {
		for _, s := range b.Tasks() {
			if err := b.Stop(s.ID, 0); err != nil {
				t.Errorf("Stop(%q): %v", s.ID, err)
			}
		}
		for _, s := range b.Tasks() {
			b.exited(t, s.ID)
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// run starts a task of the test binary.
func (b *bench) run(t testing.TB, id string, words ...string) {
	t.Helper()
	b.start(t, driver.Task{ID: id, Command: append([]string{b.binary}, words...)})
}

func (b *bench) start(t testing.TB, task driver.Task) {
	t.Helper()
	if err := b.Start(b.ctx, task); err != nil {
		t.Fatalf("Start(%q): %v", task.ID, err)
	}
}

func (b *bench) stop(t testing.TB, id string, grace time.Duration) {
	t.Helper()
	if err := b.Stop(id, grace); err != nil {
		t.Fatalf("Stop(%q): %v", id, err)
	}
}

func (b *bench) status(id string) driver.Status {
	for _, s := range b.Tasks() {
		if s.ID == id {
			return s
		}
	}
	return driver.Status{}
}

func (b *bench) exited(t testing.TB, id string) driver.Status {
	t.Helper()
	for {
		if s := b.status(id); s.State == driver.Exited {
			return s
		}
		select {
		case <-b.Changed():
		case <-b.ctx.Done():
			t.Fatalf("%s did not end within %v: %+v", id, testTimeout, b.status(id))
		}
	}
}

// output is all that a task wrote to a stream until it ended.
func (b *bench) output(t testing.TB, id string, stream driver.Stream) string {
	t.Helper()
	log, err := b.Logs(b.ctx, id, driver.LogOptions{Stream: stream, TailBytes: -1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ready returns when the task has written the line "ready".
func (b *bench) ready(t testing.TB, id string) {
	t.Helper()
	log, err := b.Logs(b.ctx, id, driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if line, err := bufio.NewReader(log).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s wrote %q (%v), want ready; it is %+v", id, line, err, b.status(id))
	}
}

// supervisor is the number of the process that holds the task's records; for the tests that kill it.
func (b *bench) supervisor(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.folder, "tasks", name, "started.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Supervisor struct{ PID int } }
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	return record.Supervisor.PID
}

// wantLost checks that a task ended in a way that nobody saw.
func wantLost(t testing.TB, got driver.Status, why string) {
	t.Helper()
	if got.State != driver.Exited || got.ExitCode != driver.NoExitCode || got.Error != why || !got.Lost ||
		got.StartedAt.IsZero() || got.EndedAt.IsZero() {
		t.Errorf("got %+v, want it lost with the error %q", got, why)
	}
}

// alone tells whether no process holds the lock.
func alone(t testing.TB, path string) bool {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatal(err)
	}
	return err == nil
}
