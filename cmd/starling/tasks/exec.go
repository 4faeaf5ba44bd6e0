// Package tasks has the commands that are about what runs on machines: alloc, attach, exec, top, volume and secret.
package tasks

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/dialog"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// Commands returns those of the root.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{newExec(r), newAttach(r), newTop(r), newAllocation(r), newVolume(r), newSecret(r)}
}

func newExec(r *remote.Remote) *cobra.Command {
	s := &dialog.Session{Remote: r}
	command := &cobra.Command{
		Use:   "exec INSTANCE -- PROGRAM [ARGUMENT...]",
		Short: "Run a program where an instance runs",
		Long: `Run a program beside an instance that runs, wherever that is: in its container or namespaces, with its environment,
account, folder and limits. The command ends with the program's own status; Ctrl-C, or the end of the instance, ends the program.
A program with a terminal goes on when this one is lost, or when ~. is typed at the beginning of a line: starling attach goes on with it.

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
			if err := s.Check(); err != nil {
				return usage.Error(command, err)
			}
			t, err := instance(command.Context(), r, readings)
			if err != nil {
				return err
			}
			return s.Run(command.Context(), &starlingv1.ExecRequest{Allocation: t.Allocation, Job: t.Job, Task: t.Task,
				Slot: uint32(t.Number), Command: args[1:]})
		},
	}
	s.Flags(command)
	return command
}

// instance returns the one instance that is meant.
func instance(ctx context.Context, r *remote.Remote, readings []target.Target) (target.Target, error) {
	t, err := target.Resolve(ctx, r, readings)
	if err != nil {
		return t, err
	}
	if t.Number < 0 {
		status, err := target.Status(ctx, r, t, true)
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
