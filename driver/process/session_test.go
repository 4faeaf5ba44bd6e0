package process_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"starling/driver"
	"starling/driver/process"
)

// TestUnattendedSessionEnds ends a session to which nobody comes, with its program.
func TestUnattendedSessionEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	b.Driver, err = process.Open(process.Config{Dir: b.folder, Hidden: b.folder,
		Supervisor: []string{b.binary, superviseWord}, UnattendedSessions: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	b.run(t, "task", programWord, "run")
	b.ready(t, "task")
	gate, lock := filepath.Join(t.TempDir(), "gate"), filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, detach := context.WithCancel(b.ctx)
	output, shown := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Exec(ctx, driver.Task{ID: "task", Command: []string{b.binary, programWord, "gate", gate, lock, "0"}},
			driver.Session{Name: "one", Output: shown, Terminal: &driver.Terminal{}})
		ended <- err
	}()
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	if alone(t, lock) {
		t.Error("the program of the session does not run")
	}
	detach()
	if err := <-ended; !errors.Is(err, driver.ErrDetached) {
		t.Errorf("detached: got error %v", err)
	}
	for !alone(t, lock) || len(b.Sessions("task")) > 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.ctx.Done():
			t.Fatalf("the session goes on: %+v", b.Sessions("task"))
		}
	}
}
