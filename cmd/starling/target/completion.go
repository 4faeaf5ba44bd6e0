package target

import (
	"context"
	"strings"

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

// CompleteJobs offers the names of jobs for each of several arguments.
func CompleteJobs(r *remote.Remote) cobra.CompletionFunc {
	one := CompleteJob(r)
	return func(command *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return one(command, nil, typed)
	}
}

// Complete offers jobs, and after "JOB." or "JOB/" also the tasks and instances of the job.
func Complete(r *remote.Remote) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := CompleteJob(r)(command, nil, typed)
		at := strings.LastIndexAny(typed, "./")
		if at <= 0 {
			return names, directive
		}
		ctx, cancel := remote.CompletionContext(command)
		defer cancel()
		answer, err := Status(ctx, r, Target{Job: JobName(typed[:at])}, true)
		if err != nil {
			return names, directive
		}
		for _, task := range answer.GetTasks() {
			names = append(names, typed[:at+1]+task.GetName())
		}
		for _, slot := range answer.GetSlots() {
			names = append(names, cobra.CompletionWithDesc(typed[:at+1]+SlotName(slot), slot.GetPhase()))
		}
		return names, directive
	}
}

// CompleteNode offers the names of machines.
func CompleteNode(r *remote.Remote) cobra.CompletionFunc {
	return r.Complete(func(ctx context.Context, peer *client.Client, _ string) (names []cobra.Completion, err error) {
		answer, err := peer.AllPeers(ctx)
		for _, p := range answer.GetPeers() {
			names = append(names, cobra.CompletionWithDesc(p.GetNode(), p.GetState()))
		}
		return names, err
	})
}
