package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms"
	"starling/terms/pool"
)

func newApply(r *remote.Remote) *cobra.Command {
	dry, against := false, usage.Version{}
	command := &cobra.Command{
		Use:   "apply FILE.yaml",
		Short: "Make a pools file the tree of pools",
		Long: `Make a pools file (- for standard input) the tree of pools: first it is told which pools are created, changed and deleted
because of it, and whose entitlements change at once; then all that is done together, or nothing. Pools that are not in the
file are deleted, but for "default", which stays as it is; pools with jobs cannot be. Who sees only some pools deletes none but
those below pools of their own, and may leave out of the file what is above these. If somebody else changes the tree
meanwhile, nothing is done. "starling pool dump" writes such a file.

With --dry-run the exit status is 0 if nothing would change and 1 if something would.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			tree, err := files.Pools(r.Console, args[0], "nothing was changed")
			if err != nil {
				return err
			}
			return applyPools(ctx, r, tree, against, dry)
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "tell what would be done, and do nothing")
	command.Flags().Var(&against, "against", "only if the tree still has this `VERSION` (default: the present one)")
	return command
}

// applyPools makes a tree that of the cluster, or tells what that would do.
func applyPools(ctx context.Context, r *remote.Remote, tree pool.Tree, against usage.Version, dry bool) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	present, err := draft.Present(ctx, peer)
	if err != nil {
		return err
	}
	if !against.Given {
		against.Number = present.Version
	}
	put, gone := present.Difference(tree)
	if gone, err = draft.Deleted(ctx, peer, gone); err != nil {
		return err
	}
	if len(put)+len(gone) == 0 && against.Number == present.Version {
		r.Hint("%s", present.Keeps())
		return nil
	}
	plan, err := peer.PlanPools(ctx, against.Number, put, gone)
	if err != nil {
		return refused(r.Console, err)
	}
	if err := r.ShowNext(plan, func() string { return poolPlanText(plan) }); err != nil {
		return err
	}
	if dry {
		return exit.Silent(exit.Failed)
	}
	if _, err := peer.ChangePools(ctx, plan.GetVersion(), put, gone); err != nil {
		return refused(r.Console, err)
	}
	r.Hint("done: the tree has version %d now", plan.GetVersion()+1)
	return nil
}

// refused tells all that is wrong with a change, a line each.
func refused(c *console.Console, err error) error {
	if answered := (*wire.Failure)(nil); errors.As(err, &answered) && answered.Code == wire.Conflict {
		return fmt.Errorf("nothing was changed: %w\nhint: starling pool dump shows the tree as it is now", err)
	}
	return files.Refused(c, err, "nothing was changed")
}

// poolPlanText tells to people what becomes of the tree.
func poolPlanText(plan *starlingv1.PlanPoolsResponse) string {
	b := &strings.Builder{}
	b.WriteString(draft.PoolsText(plan))
	if rows := draft.EntitlementRows(plan); rows != nil {
		for i := range rows {
			rows[i][0] = "  " + rows[i][0]
		}
		fmt.Fprintln(b)
		_ = (&console.Table{Rows: rows}).Write(b) // builders take everything
		fmt.Fprintln(b)
	}
	for _, w := range plan.GetWarnings() {
		fmt.Fprintf(b, "warning: %s: %s\n", w.GetPath(), w.GetReason())
	}
	return b.String()
}

func newDump(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "dump",
		Short: "Write the tree of pools as a file for apply",
		Args:  usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			present, err := draft.Present(ctx, peer)
			if err != nil {
				return err
			}
			file := jobspec.FormatPools(present.Pools)
			if !r.ForPeople() {
				return r.PrintYAML(file)
			}
			_, err = fmt.Fprintf(r.Out, "# Version %[1]d of the tree of pools. Changed, it goes back with: starling pool apply --against %[1]d FILE\n%[2]s",
				present.Version, file)
			return err
		}),
	}
}

func newRemove(r *remote.Remote) *cobra.Command {
	against := usage.Version{}
	command := &cobra.Command{
		Use:   "rm PATH...",
		Short: "Delete pools that have no jobs, with no others below them but those named too",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Error(command, fmt.Errorf("%s needs a pool's PATH", command.CommandPath()))
			}
			return nil
		},
		ValidArgsFunction: completePool(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			var gone []terms.PoolPath
			for _, path := range slices.Compact(slices.Sorted(slices.Values(args))) {
				gone = append(gone, terms.PoolPath(path))
			}
			answer, err := peer.ChangePools(ctx, against.Number, nil, gone)
			if err != nil {
				return refused(r.Console, err)
			}
			return r.ShowNext(answer, func() string { return strings.Join(args, "\n") + "\n" })
		}),
	}
	command.Flags().Var(&against, "against", "only if the tree still has this `VERSION`")
	return command
}
