package jobs

import (
	"strings"

	"github.com/spf13/cobra"

	"starling/api/draft"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newPlan(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "plan FILE.yaml",
		Short: "Tell what running a job file would do, and do nothing",
		Long: `Tell what running a job file (- for standard input) would do, and do nothing: what differs from the present version, and
which instances would be placed, replaced, updated in place and stopped, where, and in which order if all goes well. It is the
scheduler that answers; what happens can differ only if the cluster changes meanwhile. Each job of the file is planned as if it
came alone, and one that comes after another of them not before that is done.

The exit status is 0 if nothing would change and 1 if something would.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			documents, err := files.Jobs(r.Console, args[0], nothingSubmitted)
			if err != nil {
				return err
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			changes := false
			err = draft.Jobs(ctx, peer, args[0], documents, func(p *draft.Planned) error {
				changes = changes || p.Changes()
				if p.Plan == nil {
					r.Hint("%s", strings.TrimSuffix(p.Words(), "\n"))
					return nil
				}
				err := r.ShowNext(p.Plan, p.Words)
				warn(r, p.Document.Spec.Name, p.Plan.GetWarnings())
				return err
			})
			if err != nil {
				return err
			}
			if changes {
				return exit.Silent(exit.Failed)
			}
			return nil
		},
	}
}
