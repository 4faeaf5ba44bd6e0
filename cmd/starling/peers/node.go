package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newNode(r *remote.Remote) *cobra.Command {
	return usage.Group("node", "Look at machines, empty one, give it work again, or take it out for good", remote.Past(newNodes(r)),
		remote.Past(newNodeShow(r)), r.Writes(newDrain(r)),
		newRemove(r))
}

func newNodes(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the machines, with what each has and what is free of it",
		Args:  usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			answer, err := peer.AllPeers(ctx)
			if err != nil {
				return err
			}
			return r.Show(answer, func() *console.Table { return nodeTable(answer) })
		}),
	}
}

func nodeTable(answer *starlingv1.ListPeersResponse) *console.Table {
	t := console.NewTable("NODE", "STATE", "RUNS", "FREE CPU", "FREE MEMORY", "FREE DISK", "DEVICES", "ADDRESS")
	t.Spare = []string{"FREE DISK", "DEVICES", "ADDRESS"}
	for _, p := range byName(answer) {
		t.Row(p.GetNode(), stateOf(p), fmt.Sprint(p.GetAllocations()), part(p, terms.CPU), part(p, terms.Memory),
			part(p, terms.Disk), devices(p), console.Dash(p.GetAddress()))
	}
	return t
}

func newNodeShow(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a machine: what it has, what is free, its attributes, and its peer",
		Args:              usage.OneArgument("machine's NAME"),
		ValidArgsFunction: target.CompleteNode(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.AllPeers(ctx)
			if err != nil {
				return err
			}
			r.TellMoment(answer)
			at := slices.IndexFunc(answer.GetPeers(), func(p *starlingv1.Peer) bool { return p.GetNode() == args[0] })
			if at < 0 {
				return fmt.Errorf("there is no machine %s: `starling node ls` lists them", args[0])
			}
			return r.Show(answer.GetPeers()[at], func() *console.Table { return nodeFacts(answer.GetPeers()[at]) })
		}),
	}
}

func nodeFacts(p *starlingv1.Peer) *console.Table {
	t := console.NewTable("node", p.GetNode())
	t.Whole = true
	t.Row("state", stateOf(p))
	if p.GetDetail() != "" {
		t.Row("", p.GetDetail())
	}
	if p.GetAwayUntil() != nil {
		t.Row("away until", console.Time(p.GetAwayUntil().AsTime()))
	}
	if p.GetDrainDeadline() != nil {
		t.Row("drained until", console.Time(p.GetDrainDeadline().AsTime()))
	}
	t.Row("peer", console.Dash(p.GetPeer()))
	t.Row("watches", console.Dash(p.GetWatches()))
	t.Row("watched by", console.Dash(p.GetWatchedBy()))
	t.Row("address", console.Dash(p.GetAddress()))
	t.Row("runs", words.Counted(p.GetAllocations(), "instance"))
	for _, kind := range []terms.Kind{terms.CPU, terms.Memory, terms.Disk} {
		t.Row("free "+kind.String(), part(p, kind))
	}
	t.Row("devices", devices(p))
	for _, a := range p.GetAttributes() {
		t.Row("attribute "+a.GetName(), a.GetValue())
	}
	return t
}

func newDrain(r *remote.Remote) *cobra.Command {
	deadline, off, watch := time.Hour, false, false
	drain := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move what runs on a machine to others, and give it nothing new",
		Long: `Move what runs on a machine to others, and give it nothing new: services move as their updates would, with as many
without health at a time as their jobs say, and as far as others have room; batch instances may end by themselves, and what
has volumes there stays with them. What still runs there after the deadline is stopped. A drained machine stays a member; --off gives it work again.`,
		Args:              usage.OneArgument("machine's NAME"),
		ValidArgsFunction: target.CompleteNode(r),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case off && watch:
				return usage.Error(command, errors.New("--off has nothing to --watch"))
			case deadline < 0 || deadline > client.DrainDeadlineMax:
				return usage.Error(command, fmt.Errorf("--deadline must be 0s to %v, is %v", client.DrainDeadlineMax, deadline))
			}
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			var answer proto.Message
			node := terms.NodeName(args[0])
			if off {
				answer, err = peer.EndDrain(command.Context(), node)
			} else {
				answer, err = peer.DrainNode(command.Context(), node, deadline)
			}
			if err == nil {
				err = r.ShowAnswer(answer)
			}
			if err != nil || !watch {
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
	err := peer.FollowPeers(following, node, func(answer *starlingv1.ListPeersResponse) (bool, error) {
		for _, one := range answer.GetPeers() {
			if one.GetNode() == node {
				p.Set(node, words.Counted(one.GetAllocations(), "instance")+" left"+runOn(following, peer, node))
				return one.GetAllocations() == 0, nil
			}
		}
		return false, fmt.Errorf("there is no machine %s: `starling node ls` lists them", node)
	})
	if interrupted() {
		r.Hint("\ndetached; %s goes on draining", node)
		return exit.Silent(exit.Detached)
	}
	return err
}

// runOn names what runs on a node, as far as the caller may see and reach it: ": db.main[0], web.server[1]"; a few of
// them.
func runOn(ctx context.Context, peer *client.Client, node string) string {
	const named = 5
	var names []string
	_ = peer.Watch(ctx, &starlingv1.WatchRequest{Node: node, Kinds: []string{"instance"}, Once: true},
		func(one *starlingv1.WatchResponse) error {
			if one.GetInstance() != nil {
				names = append(names, one.GetName())
			}
			return nil
		})
	if rest := len(names) - named; rest > 0 {
		names = append(names[:named], fmt.Sprintf("and %d more", rest))
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
