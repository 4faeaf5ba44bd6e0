package users

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newAuthority(r *remote.Remote) *cobra.Command {
	command := usage.Group("ca", "Replace the cluster's certificate authority", newAuthorityList(r), newAuthorityRotate(r),
		newAuthorityRemove(r))
	command.Long = `Replace the certificate authority of the cluster while it works. The new one signs from then on, and the old one has signed
for it, so that whoever knows only that one finds out. Machines get other certificates at once; users when they ask next. Tasks
go on, and so do their credentials.`
	return command
}

func newAuthorityList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the authorities, and which machines show certificates of them",
		Long: `List the authorities, and which machines show certificates of them. One signs, others count yet, and former ones count no
more: they only show who came after them. Machines that do not answer are told.`,
		Args: usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			answer, err := peer.Authorities(ctx)
			if err != nil {
				return err
			}
			if len(answer.Away) > 0 {
				r.Hint("no answer from %s", strings.Join(answer.Away, ", "))
			}
			return show(r, answer.Authorities, []string{"AUTHORITY", "STATE", "EXPIRES", "MACHINES"},
				func(a *door.KnownAuthority) []string {
					return []string{a.ID, a.State, console.Time(a.Expires), console.Dash(strings.Join(a.Machines, ", "))}
				})
		}),
	}
}

func newAuthorityRemove(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "remove AUTHORITY",
		Short: "End an authority: certificates that it has signed do not count any more",
		Long: `End an authority: certificates that it has signed do not count any more. A machine that has no other, because it was away,
comes back by its key as soon as a machine answers it that holds an authority's key.`,
		Args: usage.OneArgument("authority's id, as \"starling ca ls\" lists it"),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			return peer.RemoveAuthority(ctx, args[0])
		}),
	}
}

// rotateAgain is how often to look whether all machines have certificates of the new authority.
const rotateAgain = 100 * time.Millisecond

func newAuthorityRotate(r *remote.Remote) *cobra.Command {
	wait := ""
	command := &cobra.Command{
		Use:   "rotate",
		Short: "Let a new authority take the place of the present one",
		Long: `Let a new authority take the place of the present one. The machine that is asked makes its key, and must hold that of the
present one; others that hold that get the new one from it. When all machines show certificates of the new authority the old
ones end. Machines that do not within --wait are named: then the old ones count until you end them with "starling ca remove".`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			within, err := duration(command, "wait", wait)
			if err != nil {
				return err
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			defer peer.Close()
			return rotate(command.Context(), r, peer, within)
		},
	}
	command.Flags().StringVar(&wait, "wait", "20s", "how long to wait for all machines, a `DURATION`")
	return command
}

// rotate replaces the authority, and tells how far the machines are.
func rotate(ctx context.Context, r *remote.Remote, peer *client.Client, within time.Duration) error {
	id, err := peer.Rotate(ctx)
	if err != nil {
		return notKept(err)
	}
	progress := console.NewProgress(r.Console, []string{id})
	for end := time.Now().Add(within); ; {
		answer, err := peer.Authorities(ctx)
		if err != nil {
			return err
		}
		again := rotateAgain
		old, waiting := others(answer, id)
		if len(waiting) > 0 {
			progress.Set(id, "signs; waiting for "+strings.Join(waiting, ", "))
		}
		switch {
		case len(waiting) == 0:
			progress.Set(id, "signs; all machines have certificates of it")
			err := endAll(ctx, peer, old)
			if err == nil {
				fmt.Fprintln(r.Out, id)
			}
			if err == nil || time.Now().After(end) {
				return err
			}
			again = time.Second // secrets are sealed with the new key first
		case time.Now().After(end):
			return exit.Fail(exit.Failed, "authority %s signs, but these machines show no certificate of it yet: %s\nhint: "+
				"what was signed by %s counts as well, until \"starling ca remove\"; see \"starling ca ls\"", id, strings.Join(waiting, ", "),
				strings.Join(old, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// endAll ends authorities.
func endAll(ctx context.Context, peer *client.Client, all []string) error {
	for _, one := range all {
		if err := peer.RemoveAuthority(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// others lists the other authorities that count, and the machines that show no certificate of this one.
func others(answer *door.AuthoritiesAnswer, id string) (counting, machines []string) {
	machines = slices.Clone(answer.Away)
	for _, one := range answer.Authorities {
		if one.ID == id {
			continue
		}
		machines = append(machines, one.Machines...)
		if one.State == door.Counts {
			counting = append(counting, one.ID)
		}
	}
	return counting, machines
}
