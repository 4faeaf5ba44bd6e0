package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newNode(r *remote.Remote) *cobra.Command {
	return usage.Group("node", "Empty a machine, or give it work again", newDrain(r))
}

func newDrain(r *remote.Remote) *cobra.Command {
	deadline, off, watch := time.Hour, false, false
	drain := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move what runs on a machine to others, and give it nothing new",
		Long: `Move what runs on a machine to others, and give it nothing new: services move as their updates would, with as many
without health at a time as their jobs say, and as far as others have room; batch instances may end by themselves, and what
has volumes there stays with them. What still runs there after the deadline is stopped. A drained machine stays a member; --off gives it work again.`,
		Args: usage.OneArgument("machine's NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			if off && watch {
				return usage.Error(command, errors.New("--off has nothing to --watch"))
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			node := terms.NodeName(args[0])
			if off {
				_, err = peer.EndDrain(command.Context(), node)
			} else {
				_, err = peer.DrainNode(command.Context(), node, deadline)
			}
			if err != nil || !watch || off {
				return err
			}
			return watchDrain(command.Context(), r, peer, args[0])
		},
	}
	drain.Flags().DurationVar(&deadline, "deadline", deadline,
		"after this `DURATION` what still runs there is stopped; 0 is at once")
	drain.Flags().BoolVar(&off, "off", false, "take the drain back")
	drain.Flags().BoolVar(&watch, "watch", false, "wait until nothing runs there")
	return drain
}

// watchDrain waits until a node is empty.
func watchDrain(ctx context.Context, r *remote.Remote, peer *client.Client, node string) error {
	following, interrupted, release := console.Attached(ctx, 0)
	defer release()
	p := console.NewProgress(r.Console, []string{node})
	err := peer.FollowPeers(following, func(answer *starlingv1.ListPeersResponse) (bool, error) {
		for _, one := range answer.GetPeers() {
			if one.GetNode() == node {
				p.Set(node, console.Counted(one.GetAllocations(), "instance")+" left")
				return one.GetAllocations() == 0, nil
			}
		}
		return false, fmt.Errorf("there is no machine %s: `starling peers` lists them", node)
	})
	if interrupted() {
		r.Hint("\ndetached; %s goes on draining", node)
		return exit.Silent(exit.Detached)
	}
	return err
}
