package peers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newQuorum(r *remote.Remote) *cobra.Command {
	group := usage.Group("quorum", "Show and change which machines keep the journal",
		newQuorumList(r),
		newQuorumChange(r, "add", "Let a machine keep the journal, too", `Let a machine keep the journal, too. It catches up as a learner, and gets its vote when it has. The quorum grows by itself
when there are enough machines; this is for one that was removed by hand, or for another size.`),
		newQuorumChange(r, "promote", "Give a learner its vote now", `Give a learner its vote now. That happens by itself once it has caught up; before that it is refused.`),
		newQuorumChange(r, "remove", "Let a machine keep the journal no more", `Let a machine keep the journal no more; its agent and its tasks go on, as a client of the others. It is refused
if those that are left would be no majority. The machine stays out until "starling quorum add".`))
	group.Long = `Show and change which machines keep the journal. They do so by a majority: of three one may fail, of five two. Up to three
machines, and five from seven machines on, become members by themselves, and one that stays away is replaced, as long as
a majority is there. When a majority is lost for good, "starling recover" begins anew from one that is left.`
	return group
}

func newQuorumList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "Show the machines that keep the journal, how full it is, and what happens next",
		Args:  usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.Quorum(ctx)
			if err != nil {
				return err
			}
			if err := r.Show(answer, func() *console.Table { return quorumTable(answer) }); err != nil || !r.ForPeople() {
				return err
			}
			if answer.GetProblem() != "" {
				r.Hint("warning: this is what was known last: %s", answer.GetProblem())
			}
			if answer.GetNext() != "" {
				r.Hint("next: %s", answer.GetNext())
			}
			return nil
		},
	}
}

func quorumTable(answer *starlingv1.QuorumResponse) *console.Table {
	t := console.NewTable("NODE", "STATE", "AWAY SINCE", "ZONE", "FILE", "IN USE", "QUOTA", "ETCD")
	t.Spare = []string{"FILE", "ZONE", "ETCD"}
	members := slices.SortedFunc(slices.Values(answer.GetMembers()), func(a, b *starlingv1.QuorumMember) int {
		return cmp.Compare(a.GetNode(), b.GetNode())
	})
	for _, m := range members {
		away := "-"
		if m.GetAwaySince() != nil {
			away = console.Time(m.GetAwaySince().AsTime())
		}
		file, used, quota := "-", "-", "-"
		if m.GetQuotaBytes() > 0 {
			file, quota = terms.Memory.Round(int64(m.GetFileBytes())), terms.Memory.Round(int64(m.GetQuotaBytes()))
			used = fmt.Sprintf("%s, %d %%", terms.Memory.Round(int64(m.GetUsedBytes())), 100*m.GetUsedBytes()/m.GetQuotaBytes())
		}
		t.Row(cmp.Or(m.GetNode(), "("+m.GetId()+")"), m.GetState(), away, console.Dash(m.GetZone()), file, used, quota,
			console.Dash(m.GetClientUrl()))
	}
	for _, m := range answer.GetSpare() {
		state := "spare"
		if m.GetRemoved() {
			state = "removed"
		}
		t.Row(m.GetNode(), state, "-", console.Dash(m.GetZone()), "-", "-", "-", "-")
	}
	return t
}

func newQuorumChange(r *remote.Remote, action, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: action + " NODE", Short: short, Long: long, Args: usage.OneArgument("NODE"),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			answer, err := peer.ChangeQuorum(ctx, action, args[0])
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			r.Hint("%s: done for node %s; starling quorum ls shows the quorum", action, args[0])
			return nil
		},
	}
}
