package target

import (
	"context"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/remote"
)

// CompleteJob offers the names of jobs.
func CompleteJob(r *remote.Remote) cobra.CompletionFunc {
	return r.Complete(func(ctx context.Context, peer *client.Client, typed string) (names []cobra.Completion, err error) {
		answer, err := peer.AllJobs(ctx, typed)
		for _, job := range answer.GetJobs() {
			names = append(names, cobra.CompletionWithDesc(job.GetName(), job.GetType()+", "+job.GetStatus()))
		}
		return names, err
	})
}

// Complete offers jobs, and after "JOB/" also the tasks of the job.
func Complete(r *remote.Remote) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := CompleteJob(r)(command, args, typed)
		job, _ := cutLast(typed)
		if job == "" || len(args) > 0 {
			return names, directive
		}
		ctx, cancel := remote.CompletionContext(command)
		defer cancel()
		answer, err := Status(ctx, r, JobName(job), true)
		if err != nil {
			return names, directive
		}
		for _, task := range answer.GetTasks() {
			names = append(names, job+"/"+task.GetName())
		}
		for _, slot := range answer.GetSlots() {
			names = append(names, cobra.CompletionWithDesc(job+"/"+SlotName(slot), slot.GetPhase()))
		}
		return names, directive
	}
}
