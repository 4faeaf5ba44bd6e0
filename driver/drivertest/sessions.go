package drivertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"starling/driver"
)

// talk copies what it reads to standard output, and then ends.
func talk(code int) int {
	_, err := io.Copy(os.Stdout, os.Stdin)
	must(err)
	fmt.Fprintln(os.Stderr, "ended")
	return code
}

// terminal writes the size of its terminal, now and whenever that changes.
func terminal() int {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	for {
		rows, columns, err := pty.Getsize(os.Stdin)
		must(err)
		fmt.Printf("%dx%d %s\n", columns, rows, os.Getenv("TERM"))
		<-resized
	}
}

// heard is what a program has said so far.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
	told chan struct{}
}

func newHeard() *heard { return &heard{told: make(chan struct{}, 1)} }

// Write takes what it says.
func (h *heard) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(data)
	select {
	case h.told <- struct{}{}:
	default:
	}
	return len(data), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ReplaceAll(h.text.String(), "\r", "")
}

// await returns when it has said something.
func (h *heard) await(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for !strings.Contains(h.String(), want) {
		select {
		case <-h.told:
		case <-ctx.Done():
			t.Fatalf("the program said %q, want %q", h.String(), want)
		}
	}
}

// testSession talks with a program beside a task.
func testSession(t *testing.T, b *bench) {
	b.startReady(t, "task", "run")
	output, errors := newHeard(), newHeard()
	code, err := b.Exec(b.ctx, b.task("task", "talk", "5"),
		driver.Session{Input: strings.NewReader("one\ntwo\n"), Output: output, Errors: errors})
	if err != nil || code != 5 || output.String() != "one\ntwo\n" || errors.String() != "ended\n" {
		t.Errorf("got %d, %v, %q and %q, want 5 and what it was told", code, err, output, errors)
	}
	code, err = b.Exec(b.ctx, b.task("task", "signal", "15"), driver.Session{Output: output, Errors: errors})
	if err != nil || code != 128+15 {
		t.Errorf("got %d, %v of a program that a signal ended", code, err)
	}
	output = newHeard()
	code, err = b.Exec(b.ctx, b.task("task", "environment"),
		driver.Session{Output: output, Errors: errors, Env: []string{"TERM=dumb"}})
	if err != nil || code != 0 || !strings.Contains(output.String(), "TERM=dumb\n") {
		t.Errorf("got %d, %v and %q, want the environment of the session", code, err, output)
	}
	missing := b.task("task")
	missing.Command = []string{"/no/such/program"}
	if code, err = b.Exec(b.ctx, missing, driver.Session{Output: output, Errors: errors}); err == nil && code == 0 {
		t.Error("a program that is not there has succeeded")
	}
}

// testTerminal gives a program a terminal, changes its size and interrupts it.
func testTerminal(t *testing.T, b *bench) {
	b.startReady(t, "task", "run")
	input, typed, output := io.Reader(nil), (*io.PipeWriter)(nil), newHeard()
	input, typed = io.Pipe()
	defer typed.Close()
	resized := make(chan driver.Size)
	defer close(resized)
	result := make(chan string, 1)
	go func() {
		code, err := b.Exec(b.ctx, b.task("task", "terminal"), driver.Session{Input: input, Output: output,
			Terminal: &driver.Terminal{Size: driver.Size{Columns: 100, Rows: 30}, Resized: resized},
			Env:      []string{"TERM=vt100"}})
		result <- fmt.Sprint(code, err)
	}()
	output.await(b.ctx, t, "100x30 vt100\n")
	resized <- driver.Size{Columns: 60, Rows: 20}
	output.await(b.ctx, t, "60x20 vt100\n")
	const interrupt = "\x03"
	if _, err := io.WriteString(typed, interrupt); err != nil {
		t.Fatal(err)
	}
	if got, want := <-result, "130 <nil>"; got != want {
		t.Errorf("after Ctrl-C: got %s, want %s; it said %q", got, want, output)
	}
}

// testSessionEnds has sessions end with who asked, and with the task.
func testSessionEnds(t *testing.T, b *bench) {
	lock := FamilyLock(t)
	b.startReady(t, "task", "run")
	for _, c := range []struct {
		name string
		end  func(cancel func())
	}{
		{"who asked is gone", func(cancel func()) { cancel() }},
		{"the task ends", func(func()) { b.stop(t, "task", 0) }},
	} {
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		read, write := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			code, err := b.Exec(ctx, b.task("task", "member", lock), driver.Session{Output: write, Errors: write})
			if err == nil && code == 0 {
				err = fmt.Errorf("it succeeded")
			}
			ended <- err
		}()
		if line, err := bufio.NewReader(read).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%s: it said %q, %v", c.name, line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, read) }()
		c.end(cancel)
		<-ended
		waitAlone(t, lock)
	}
}
