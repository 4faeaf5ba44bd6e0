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

The exit status is 0 if nothing would change, 1 if something would, and another if that is not known.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			changes, err := plan(command, r, args[0])
			switch {
			case exit.StatusOf(err) == exit.Failed: // which is the status for changes
				return exit.Fail(exit.Usage, "%w", err)
			case err == nil && changes:
				return exit.Silent(exit.Failed)
			}
			return err
		},
	}
}

// plan tells what running the jobs of a file would do, and returns whether something would change.
func plan(command *cobra.Command, r *remote.Remote, file string) (changes bool, err error) {
	documents, err := files.Jobs(r.Console, file, nothingSubmitted)
	if err != nil {
		return false, err
	}
	ctx, cancel := remote.AnswerContext(command)
	defer cancel()
	peer, err := r.Dial()
	if err != nil {
		return false, err
	}
	err = draft.Jobs(ctx, peer, file, documents, func(p *draft.Planned) error {
		changes = changes || p.Changes()
		if p.Plan == nil {
			r.Hint("%s", strings.TrimSuffix(p.Words(), "\n"))
			return nil
		}
		err := r.ShowNext(p.Plan, p.Words)
		warn(r, p.Document.Spec.Name, p.Plan.GetWarnings())
		return err
	})
	return changes, err
}
