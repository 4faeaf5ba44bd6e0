package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Session is what a program beside a task is given by whoever asks for it.
type Session struct {
	// Input is what it reads; nil for nothing. Its Read must end soon after the program has ended: it may be under way
	// when Exec returns, but what it returns then is lost.
	Input io.Reader
	// Output and Errors take what it writes.
	Output, Errors io.Writer
	// Terminal is the terminal that it has; nil for none. With one all that it writes is Output.
	Terminal *Terminal
	// Env are variables that it has beside those of the task.
	Env []string
	// Name has the session outlive who looks at it, and this process, if it has a terminal; By tells who began it. Another
	// session of the name must not be there.
	Name, By string
	// Drain is how long, after its end, what it has left behind may keep its output open, and its output may take to be
	// taken; zero means a second.
	Drain time.Duration
}

// SessionStatus tells of a session that outlives who looks at it.
type SessionStatus struct {
	// Task is the ID of the task beside which it is, Name its own.
	Task, Name string
	Command    []string
	By         string
	Began      time.Time
	// Attached tells that somebody looks at it, Ended that its program has ended, and nobody was told how.
	Attached, Ended bool
}

// ErrDetached is what those get who look no longer at a session that goes on.
var ErrDetached = errors.New("the session goes on without you")

// Terminal is a terminal as somebody sees it.
type Terminal struct {
	Size Size
	// Resized are its later sizes; nil for none.
	Resized <-chan Size
}

// Size is that of a terminal.
type Size struct{ Columns, Rows uint16 }

// saidBytesMax bounds what Run keeps of what a program says.
const saidBytesMax = 256

// Run runs a program beside a task, as Exec does, that nobody talks with. It is an error if the program does not exit
// with 0; the error has the beginning of what it said.
func Run(ctx context.Context, d Driver, t Task) error {
	said := &beginning{}
	code, err := d.Exec(ctx, t, Session{Output: said, Errors: said})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d", code)
	}
	if words := strings.TrimSpace(said.text.String()); err != nil && words != "" {
		return fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ text bytes.Buffer }

// Write takes everything, and keeps what there is room for.
func (b *beginning) Write(text []byte) (int, error) {
	b.text.Write(text[:min(len(text), saidBytesMax-b.text.Len())])
	return len(text), nil
}
