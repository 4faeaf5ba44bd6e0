package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/dialog"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newAttach(r *remote.Remote) *cobra.Command {
	s := &dialog.Session{Remote: r, Interactive: true, Terminal: true}
	list := false
	command := &cobra.Command{
		Use:   "attach INSTANCE [SESSION]",
		Short: "Go on with a session beside an instance",
		Long: `Go on with a session that starling exec -it or starling run -it has begun, from here: its program goes on when a terminal is closed, a
connection is lost or a peer is restarted, and when ~. is typed at the beginning of a line. The last screenful is shown first. Whoever is
attached to the session is detached. The command ends with the program's own status, also if the program has ended meanwhile: that is told
once.

A session to which nobody is attached for ten minutes is ended, and one whose instance ends ends with it. Without a SESSION it is the only
one beside the instance; --ls lists them. It needs the role operator in the pool of the job, and the log of the instance's machine tells
who attached.`,
		Example: "  starling attach web.server[2]\n  starling attach web.server[2] ab3x7q\n  starling attach --ls web.server[2]",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || list && len(args) > 1 {
				return usage.Error(command, errors.New("name an INSTANCE and perhaps a SESSION beside it"))
			}
			return nil
		},
		ValidArgsFunction: target.Complete(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			t, err := instance(ctx, r, readings)
			if err != nil {
				return err
			}
			request := &starlingv1.ExecRequest{Allocation: t.Allocation, Job: t.Job, Task: t.Task, Slot: uint32(t.Number)}
			if !list && len(args) > 1 {
				request.Session = args[1]
			} else {
				all, err := peer.ListSessions(ctx, &starlingv1.ListSessionsRequest{Allocation: t.Allocation, Job: t.Job,
					Task: t.Task, Slot: uint32(t.Number)})
				if err != nil || list {
					return orShow(err, r, all)
				}
				if request.Session, err = onlyOne(args[0], all); err != nil {
					return err
				}
			}
			if err := s.Check(); err != nil {
				return exit.Fail(exit.Usage, "a session has a terminal: %w", err)
			}
			return s.Run(ctx, request)
		}),
	}
	command.Flags().BoolVar(&list, "ls", false, "list the sessions beside the instance")
	return command
}

// onlyOne returns the only session that there is.
func onlyOne(instance string, all *starlingv1.ListSessionsResponse) (name string, err error) {
	switch sessions := all.GetSessions(); len(sessions) {
	case 0:
		return "", fmt.Errorf("no session goes on beside %s: starling exec -it %s -- PROGRAM begins one", all.GetAllocation(), instance)
	case 1:
		return sessions[0].GetName(), nil
	default:
		return "", exit.Fail(exit.Usage, "%d sessions go on beside %s: name one, such as %s", len(sessions), all.GetAllocation(),
			sessions[0].GetName())
	}
}

func orShow(err error, r *remote.Remote, all *starlingv1.ListSessionsResponse) error {
	if err != nil {
		return err
	}
	return r.Show(all, func() *console.Table {
		t := console.NewTable("SESSION", "STATE", "BEGAN", "BY", "COMMAND")
		for _, one := range all.GetSessions() {
			state := "detached"
			switch {
			case one.GetEnded():
				state = "ended"
			case one.GetAttached():
				state = "attached"
			}
			t.Row(one.GetName(), state, console.Time(one.GetBegan().AsTime()), one.GetBy(),
				strings.Join(one.GetCommand(), " "))
		}
		return t
	})
}
