package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completeWithin bounds how long a shell waits for names.
const completeWithin = 200 * time.Millisecond

// completeJob offers the names of jobs.
func (r *remote) completeJob(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(contextOf(command), completeWithin)
	defer cancel()
	peer, err := r.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	answer, err := peer.AllJobs(ctx, typed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, job := range answer.GetJobs() {
		names = append(names, cobra.CompletionWithDesc(job.GetName(), job.GetType()+", "+job.GetStatus()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeTarget offers jobs, and after "JOB/" also the tasks of the job.
func (r *remote) completeTarget(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, directive := r.completeJob(command, args, typed)
	job, _ := cutLast(typed)
	if job == "" || len(args) > 0 {
		return names, directive
	}
	ctx, cancel := context.WithTimeout(contextOf(command), completeWithin)
	defer cancel()
	answer, err := r.jobStatus(ctx, jobNamed(job), true)
	if err != nil {
		return names, directive
	}
	for _, task := range answer.GetTasks() {
		names = append(names, job+"/"+task.GetName())
	}
	for _, slot := range answer.GetSlots() {
		names = append(names, cobra.CompletionWithDesc(job+"/"+slotName(slot), slot.GetPhase()))
	}
	return names, directive
}

// contextOf returns the command's context; a shell's request for completion may come without.
func contextOf(command *cobra.Command) context.Context {
	if ctx := command.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
