// Package tasks has the commands that are about what runs on machines: alloc, exec, top and volume.
package tasks

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// Commands returns those of the root.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{newExec(r), newTop(r), newAllocation(r), newVolume(r), newSecret(r)}
}

// session is how a program beside an instance is talked with.
type session struct {
	remote                *remote.Remote
	interactive, terminal bool
}

func newExec(r *remote.Remote) *cobra.Command {
	s := &session{remote: r}
	command := &cobra.Command{
		Use:   "exec INSTANCE -- PROGRAM [ARGUMENT...]",
		Short: "Run a program where an instance runs",
		Long: `Run a program beside an instance that runs, wherever that is: in its container or namespaces, with its environment,
account, folder and limits. The command ends with the program's own status; Ctrl-C, or the end of the instance, ends the program.

An INSTANCE is NAME.TASK[INDEX], or NAME if the job has only one. It needs the role operator in the pool of the job, and the log of
the instance's machine tells who had which session.`,
		Example: "  starling exec web.server[2] -- cat /etc/hosts\n  starling exec -it web.server[2] -- sh\n" +
			"  starling exec -i db < dump.sql -- psql",
		Args: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usage.Error(command, fmt.Errorf("name an INSTANCE and, after --, a PROGRAM"))
			}
			return nil
		},
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			if s.terminal && !isTerminal(r.In) {
				return usage.Error(command, fmt.Errorf("-t needs a terminal, and standard input is none: use -i alone"))
			}
			return s.run(command.Context(), readings, args[1:])
		},
	}
	command.Flags().BoolVarP(&s.interactive, "interactive", "i", false, "let the program read standard input")
	command.Flags().BoolVarP(&s.terminal, "tty", "t", false, "give the program a terminal")
	return command
}

// isTerminal tells whether something is a terminal of this process.
func isTerminal(in any) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (s *session) run(ctx context.Context, readings []target.Target, program []string) error {
	t, err := instance(ctx, s.remote, readings)
	if err != nil {
		return err
	}
	request := &starlingv1.ExecRequest{Allocation: t.Allocation, Job: t.Job, Task: t.Task, Slot: uint32(t.Number)}
	peer, err := s.remote.Dial()
	if err != nil {
		return err
	}
	defer peer.Close()
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer release()
	request.Command = program
	own := client.Session{Stdout: s.remote.Out, Stderr: s.remote.Err}
	if s.interactive {
		own.Input = s.remote.In
	}
	if s.terminal {
		restore, err := s.takeTerminal(ctx, request, &own)
		if err != nil {
			return err
		}
		defer restore()
	}
	code, err := peer.Exec(ctx, request, own)
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

// instance returns the one instance that is meant.
func instance(ctx context.Context, r *remote.Remote, readings []target.Target) (target.Target, error) {
	t, err := target.Resolve(ctx, r, readings)
	if err != nil {
		return t, err
	}
	if t.Number < 0 {
		status, err := target.Status(ctx, r, t.Job, true)
		if err != nil {
			return t, err
		}
		all, err := t.Choose(status)
		if err != nil {
			return t, err
		}
		if len(all) > 1 {
			return t, exit.Fail(exit.Usage, "%s has more than one instance: name one, such as %s", t, all[0])
		}
		t = all[0]
	}
	return t, nil
}

// takeTerminal has keys go to the program as they are typed, and asks for a terminal there that is as large as the
// one here.
func (s *session) takeTerminal(ctx context.Context, request *starlingv1.ExecRequest,
	own *client.Session) (restore func(), err error) {
	file := s.remote.In.(*os.File) // it is a terminal
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
