// Package jobs has the commands that run jobs, change them, and tell how they stand.
package jobs

import (
	"github.com/spf13/cobra"

	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// Commands returns those of the root that are about jobs: run, scale, plan, ps, job, alloc, stop and why.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{newRun(r), newScale(r), newPlan(r), newPs(r), newJob(r), newAllocation(r), newStop(r),
		newWhy(r)}
}

func newJob(r *remote.Remote) *cobra.Command {
	command := &cobra.Command{
		Use:   "job",
		Short: "Look at one job, and change it",
		Args:  usage.NoArguments,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newJobStatus(r), newJobGraph(r), newJobOutput(r), newJobHistory(r), newJobDiff(r), newJobRevert(r),
		newJobRestart(r), newJobSuspend(r, false), newJobSuspend(r, true), newJobUpdate(r))
	return command
}
