// Package jobs has the commands that run jobs, change them, and tell how they stand.
package jobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// Commands returns those of the root that are about jobs: run, scale, plan, ps, job, alloc, stop and why.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{newRun(r), newScale(r), remote.Past(newPlan(r)), remote.Past(newPs(r)), newJob(r),
		newAllocation(r), newStop(r), remote.Past(newWhy(r))}
}

func newJob(r *remote.Remote) *cobra.Command {
	return usage.Group("job", "Look at one job, and change it", remote.Past(newJobStatus(r)), remote.Past(newJobGraph(r)),
		newJobOutput(r), remote.Past(newJobHistory(r)), remote.Past(newJobDiff(r)), newJobRevert(r),
		newJobRestart(r), newJobSuspend(r, false), newJobSuspend(r, true),
		newJobUpdate(r))
}

func newPs(r *remote.Remote) *cobra.Command {
	all := false
	command := &cobra.Command{
		Use:   "ps [PREFIX]",
		Short: "List jobs",
		Long:  `List the jobs that have not ended, or with --all also those that have; with PREFIX only those whose names begin so.`,
		Args:  usage.AtMostOne("PREFIX"),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.AllJobs(ctx, append(args, "")[0])
			if err != nil {
				return err
			}
			hidden := 0
			if !all {
				hidden = hideEnded(answer)
			}
			draw := func() *console.Table { return jobTable(answer.GetJobs(), r.Now(answer.GetTime())) }
			if err := r.Show(answer, draw); err != nil {
				return err
			}
			if hidden > 0 && r.ForPeople() {
				r.Hint("%s not shown: --all shows them too", console.Counted(hidden, "ended job"))
			}
			return nil
		}),
	}
	command.Flags().BoolVarP(&all, "all", "a", false, "show jobs that have ended, too")
	return command
}

// hideEnded drops the jobs that have ended and returns how many.
func hideEnded(answer *starlingv1.ListJobsResponse) int {
	var live []*starlingv1.Job
	for _, job := range answer.GetJobs() {
		if !job.GetFinal() {
			live = append(live, job)
		}
	}
	hidden := len(answer.GetJobs()) - len(live)
	answer.Jobs = live
	return hidden
}

func jobTable(jobs []*starlingv1.Job, now time.Time) *console.Table {
	columns := []string{"JOB", "TYPE", "STATUS", "VERSION", "WANTED", "INSTANCES", "AGE", "ENDED"}
	decided := slices.ContainsFunc(jobs, func(job *starlingv1.Job) bool { return job.GetPolicyAction() != nil })
	if decided {
		columns = append(columns, "DECIDED")
	}
	t := console.NewTable(columns...)
	for _, job := range jobs {
		ended := "-"
		if job.GetFinishedAt() != nil {
			ended = age(job.GetFinishedAt(), now) + " ago"
		}
		row := []string{job.GetName(), job.GetType(), job.GetStatus(), strconv.Itoa(int(job.GetVersion())),
			fmt.Sprint(job.GetCounts().GetDesired()), tally(job.GetCounts()), age(job.GetSubmittedAt(), now), ended}
		if decided {
			row = append(row, console.Dash(job.GetPolicyAction().GetText()))
		}
		t.Row(row...)
	}
	return t
}
