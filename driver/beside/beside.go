// Package beside gives a program that runs beside a task the files of a session: its input and output, or a terminal.
package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"

	"starling/driver"
)

// drainDefault is a session's Drain if it does not say.
const drainDefault = time.Second

// endOfInput is what a terminal takes for the end of its input.
const endOfInput = 4

// Program is a program of a session.
type Program struct {
	*exec.Cmd
	session driver.Session
	// terminal is this side of the program's, line the program's own; nil without one.
	terminal, line *os.File
	input          io.WriteCloser
	shown          chan struct{}
}

// New returns a program that is ended with its process group when ctx ends, with the files of the session. A terminal
// is made in the namespaces of the calling thread, of the account that the program is to have; nil is that of this
// process. Close must be called at the end.
func New(ctx context.Context, words []string, s driver.Session, account *syscall.Credential) (*Program, error) {
	p := &Program{Cmd: exec.CommandContext(ctx, words[0], words[1:]...), session: s, shown: make(chan struct{})}
	p.WaitDelay = cmp.Or(s.Drain, drainDefault)
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.Cancel = func() error { return syscall.Kill(-p.Process.Pid, syscall.SIGKILL) }
	var err error
	switch {
	case s.Terminal != nil:
		err = p.openTerminal(account)
	case s.Input != nil:
		p.input, err = p.StdinPipe()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	if s.Terminal == nil {
		p.Stdout, p.Stderr = s.Output, s.Errors
	}
	return p, nil
}

// openTerminal makes the terminal.
func (p *Program) openTerminal(account *syscall.Credential) (err error) {
	if p.terminal, p.line, err = pty.Open(); err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	p.Stdin, p.Stdout, p.Stderr = p.line, p.line, p.line
	p.SysProcAttr.Setctty = true
	if account != nil {
		err = p.line.Chown(int(account.Uid), int(account.Gid))
	}
	return errors.Join(err, p.resize(p.session.Terminal.Size))
}

// resize tells the terminal how large it is; a size of nothing is none.
func (p *Program) resize(size driver.Size) error {
	if size.Columns == 0 || size.Rows == 0 {
		return nil
	}
	return pty.Setsize(p.terminal, &pty.Winsize{Cols: size.Columns, Rows: size.Rows})
}

// Started lets the session begin, once the program has been started.
func (p *Program) Started() {
	if p.terminal == nil {
		if p.input != nil {
			go p.feed(p.input, p.input.Close)
		}
		close(p.shown)
		return
	}
	p.line.Close()
	go func() {
		defer close(p.shown)
		_, _ = io.Copy(p.session.Output, p.terminal) // ends with the last who has the terminal, or its deadline
	}()
	if p.session.Input != nil {
		go p.feed(p.terminal, func() error {
			_, err := p.terminal.Write([]byte{endOfInput})
			return err
		})
	}
	if p.session.Terminal.Resized != nil {
		go func() {
			for size := range p.session.Terminal.Resized {
				_ = p.resize(size) // the program may have ended
			}
		}()
	}
}

// feed passes the input on until it, or the program, has ended.
func (p *Program) feed(to io.Writer, end func() error) {
	if _, err := io.Copy(to, p.session.Input); err == nil {
		_ = end()
	}
}

// Finish waits for the program and for what it has written, and returns its exit code.
func (p *Program) Finish(ctx context.Context) (exitCode int, err error) {
	err = p.Wait()
	if p.terminal != nil {
		_ = p.terminal.SetReadDeadline(time.Now().Add(p.WaitDelay))
	}
	<-p.shown
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return driver.NoExitCode, fmt.Errorf("it was ended: %w", context.Cause(ctx))
	case errors.As(err, &ended):
		status, _ := ended.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return driver.NoExitCode, err
	}
	return 0, nil
}

// Close gives up the terminal: what still has it is told that it is gone.
func (p *Program) Close() {
	if p.terminal != nil {
		p.terminal.Close()
		p.line.Close()
	}
}
