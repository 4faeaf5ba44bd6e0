// Package dialog talks with programs that run beside instances.
package dialog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
)

// Session is how a program beside an instance is talked with.
type Session struct {
	Remote *remote.Remote
	// Interactive lets the program read standard input, Terminal gives it one as this process has.
	Interactive, Terminal bool
}

// Flags declares how a program is talked with.
func (s *Session) Flags(command *cobra.Command) {
	command.Flags().BoolVarP(&s.Interactive, "interactive", "i", false, "let the program read standard input")
	command.Flags().BoolVarP(&s.Terminal, "tty", "t", false, "give the program a terminal")
}

// Check returns what is wrong with a terminal that is asked for here.
func (s *Session) Check() error {
	if s.Terminal && !isTerminal(s.Remote.In) {
		return errors.New("-t needs a terminal, and standard input is none: use -i alone")
	}
	return nil
}

// isTerminal tells whether something is a terminal of this process.
func isTerminal(in any) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Run runs a program, and returns its status as that of this command.
func (s *Session) Run(ctx context.Context, request *starlingv1.ExecRequest) error {
	peer, err := s.Remote.Dial()
	if err != nil {
		return err
	}
	defer peer.Close()
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own := client.Session{Stdout: s.Remote.Out, Stderr: s.Remote.Err}
	if s.Interactive {
		own.Input = s.Remote.In
	}
	if s.Interactive && s.Terminal {
		own.Input = &escaping{from: s.Remote.In, detach: func() { cancel(errDetached) }}
	}
	var head *starlingv1.ExecResponse
	own.Began = func(told *starlingv1.ExecResponse) { head = told }
	restore := func() {}
	if s.Terminal {
		var err error
		if restore, err = s.takeTerminal(ctx, request, &own); err != nil {
			return err
		}
	}
	code, err := peer.Exec(ctx, request, own)
	restore()
	if err != nil && head.GetSession() != "" && (ctx.Err() != nil || isLost(err) || isTaken(err)) {
		instance, _, _ := strings.Cut(head.GetAllocation(), "#")
		why := errors.Join(ErrGoesOn, err)
		if errors.Is(context.Cause(ctx), errDetached) {
			why = errDetached
		} else if isTaken(err) {
			why = goesOn(err.Error())
		}
		return exit.Fail(exit.Detached, "%w; for ten minutes it goes on: starling attach '%s' %s", why, instance, head.GetSession())
	}
	switch {
	case ctx.Err() != nil:
		return exit.Silent(128 + int(syscall.SIGINT))
	case err != nil:
		return err
	case code != 0:
		return exit.Silent(code)
	}
	return nil
}

// ErrGoesOn tells that a session is lost to this side, and not ended.
var ErrGoesOn = errors.New("the session is not seen here any more")

// errDetached tells that the user has left a session that goes on.
var errDetached error = goesOn("detached")

// goesOn says in words that a session goes on.
type goesOn string

func (g goesOn) Error() string        { return string(g) }
func (g goesOn) Is(target error) bool { return target == ErrGoesOn }

// isLost tells whether an error says nothing of the program of a session.
func isLost(err error) bool {
	var failure *wire.Failure
	return errors.As(err, &failure) && (failure.Code == wire.Unavailable || failure.Code == wire.Canceled)
}

// isTaken tells whether a session that had begun goes on without this side: its peer ends, or somebody else attached.
func isTaken(err error) bool {
	var failure *wire.Failure
	return errors.As(err, &failure) && failure.Code == wire.Conflict
}

// takeTerminal has keys go to the program as they are typed, and asks for a terminal there that is as large as the
// one here.
func (s *Session) takeTerminal(ctx context.Context, request *starlingv1.ExecRequest,
	own *client.Session) (restore func(), err error) {
	file := s.Remote.In.(*os.File) // it is a terminal
	in := int(file.Fd())
	size := func() *starlingv1.ExecRequest {
		columns, rows, _ := term.GetSize(in)
		return &starlingv1.ExecRequest{Columns: uint32(columns), Rows: uint32(rows)}
	}
	now := size()
	request.Terminal, request.Columns, request.Rows = true, now.Columns, now.Rows
	if name := os.Getenv("TERM"); name != "" {
		request.Env = append(request.Env, "TERM="+name)
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, fmt.Errorf("use the terminal: %w", err)
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	resized := make(chan *starlingv1.ExecRequest)
	own.Resized = resized
	go func() {
		defer close(resized)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			select {
			case <-ctx.Done():
				return
			case resized <- size():
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		_ = term.Restore(in, before) // it is gone if this fails
	}, nil
}
