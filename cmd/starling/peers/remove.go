package peers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// newRemove takes a machine out of the cluster for good.
func newRemove(r *remote.Remote) *cobra.Command {
	yes, off := false, false
	remove := r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
		if err := peer.RemoveNode(ctx, args[0], off); err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "node %s was removed\n", args[0])
		return nil
	})
	command := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a machine out of the cluster for good, and end what it may do",
		Long: `Take a machine out of the cluster for good: its peer leaves, its tasks end there and start on others, and its key does not
count any more, at the peers as in the journal's own engine. What volumes tie to it waits for it, until "starling alloc stop
--give-up-volumes" gives them up. It comes back only by a new token and an empty data directory. Drain a machine first
that works.

Instances with stop_after, which stop themselves on a machine that is cut off, are waited for until they certainly have. --is-off
says that its power is off, or its system was installed anew: they start elsewhere at once, and twice if that is wrong.`,
		Args: usage.OneArgument("machine's NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			if !yes {
				r.Hint("this takes node %s out of the cluster for good, with all that runs there: type its name to go on", args[0])
				line, err := bufio.NewReader(r.In).ReadString('\n')
				if strings.TrimSpace(line) != args[0] {
					return exit.Fail(exit.Usage, "nothing was changed, for the name was not typed: %w", cmp.Or(err, errors.New("another was")))
				}
			}
			return remove(command, args)
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	command.Flags().BoolVar(&off, "is-off", false, "nothing runs on it any more: do not wait until stop_after is over there")
	return command
}
