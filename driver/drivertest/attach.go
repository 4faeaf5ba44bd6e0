package drivertest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"starling/driver"
)

// seen is somebody who looks at a session.
type seen struct {
	output *heard
	typed  *io.PipeWriter
	detach func()
	ended  chan error
	code   int
}

// look begins a session, or attaches to it if no verb is named.
func (b *bench) look(id, name string, size driver.Size, verb ...string) *seen {
	input, typed := io.Pipe()
	ctx, cancel := context.WithCancel(b.ctx)
	s := &seen{output: newHeard(), typed: typed, detach: cancel, ended: make(chan error, 1)}
	session := driver.Session{Name: name, By: "alice", Input: input, Output: s.output, Env: []string{"TERM=vt100"},
		Terminal: &driver.Terminal{Size: size}}
	go func() {
		defer input.Close()
		var err error
		if len(verb) > 0 {
			s.code, err = b.Exec(ctx, b.task(id, verb...), session)
		} else {
			s.code, err = b.Attach(ctx, id, session)
		}
		s.ended <- err
	}()
	return s
}

func (s *seen) wantDetached(t *testing.T) {
	t.Helper()
	if err := <-s.ended; !errors.Is(err, driver.ErrDetached) {
		t.Errorf("got the error %v, want that the session goes on", err)
	}
}

// testSessionGoesOn has a session outlive who looks at it and the driver, be taken over, and end.
func testSessionGoesOn(t *testing.T, b *bench) {
	b.startReady(t, "task", "run")
	first := b.look("task", "one", driver.Size{Columns: 100, Rows: 30}, "terminal")
	first.output.await(b.ctx, t, "100x30 vt100\n")
	first.detach()
	first.wantDetached(t)
	b.reopen(t, func() {})
	b.eventually(t, "a session to which nobody is attached", func() bool {
		all := b.Sessions("task")
		return len(all) == 1 && all[0].Name == "one" && all[0].By == "alice" && !all[0].Attached && !all[0].Ended
	})
	if others := b.Sessions("other"); len(others) > 0 {
		t.Errorf("beside another task there are %+v", others)
	}
	second := b.look("task", "one", driver.Size{Columns: 60, Rows: 20})
	second.output.await(b.ctx, t, "100x30 vt100\n") // what was shown before
	second.output.await(b.ctx, t, "60x20 vt100\n")
	third := b.look("task", "one", driver.Size{Columns: 70, Rows: 25})
	second.wantDetached(t)
	third.output.await(b.ctx, t, "70x25 vt100\n")
	if _, err := io.WriteString(third.typed, "\x03"); err != nil {
		t.Fatal(err)
	}
	if err := <-third.ended; err != nil || third.code != 130 {
		t.Errorf("after Ctrl-C: got %d, %v, want 130", third.code, err)
	}
	b.wantNoSession(t, "one")
}

// testSessionIsOver has sessions end while nobody looks, by themselves and with their task. How is told once.
func testSessionIsOver(t *testing.T, b *bench) {
	b.startReady(t, "task", "run")
	gate, lock := filepath.Join(t.TempDir(), "gate"), filepath.Join(t.TempDir(), "lock")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	over := func(name string, code int, end func(), verb ...string) {
		t.Helper()
		s := b.look("task", name, driver.Size{Columns: 80, Rows: 24}, verb...)
		s.output.await(b.ctx, t, "ready\n")
		s.detach()
		s.wantDetached(t)
		end()
		b.eventually(t, "the session has ended", func() bool {
			all := b.Sessions("task")
			return len(all) == 1 && all[0].Ended
		})
		s = b.look("task", name, driver.Size{Columns: 80, Rows: 24})
		wasEnded := code > 128 // by a signal, or for its task where that cannot be seen
		if err := <-s.ended; s.code != code && !(wasEnded && err != nil) || errors.Is(err, driver.ErrDetached) {
			t.Errorf("got %d, %v of a session that has ended, want %d", s.code, err, code)
		}
		s.output.await(b.ctx, t, "ready\n")
		b.wantNoSession(t, name)
	}
	over("by itself", 5, func() {
		opened, err := os.OpenFile(gate, os.O_WRONLY, 0)
		if err := errors.Join(err, opened.Close()); err != nil {
			t.Fatal(err)
		}
	}, "gate", gate, lock, "5")
	over("with its task", 128+9, func() { b.stop(t, "task", 0) }, "run")
	b.exited(t, "task")
	s := b.look("task", "late", driver.Size{}, "run")
	if err := <-s.ended; err == nil || errors.Is(err, driver.ErrDetached) {
		t.Errorf("a session beside a task that has ended: got error %v", err)
	}
}

func (b *bench) wantNoSession(t *testing.T, name string) {
	t.Helper()
	b.eventually(t, "no session is left", func() bool { return len(b.Sessions("task")) == 0 })
	s := b.look("task", name, driver.Size{})
	if err := <-s.ended; err == nil || errors.Is(err, driver.ErrDetached) {
		t.Errorf("a session that is gone: got error %v", err)
	}
}

func (b *bench) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.ctx.Done():
			t.Fatalf("not within %v: %s", testTimeout, what)
		}
	}
}
