// Package jobs has the commands that run jobs, change them, and tell how they stand.
package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cluster/workload"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/terms"
)

// Commands returns those of the root that are about jobs: run, scale, plan, ps, job, alloc, stop and why.
func Commands(r *remote.Remote) []*cobra.Command {
	return []*cobra.Command{r.Writes(newRun(r)), r.Writes(newScale(r)), remote.Past(newPlan(r)),
		remote.Past(newPs(r, "ps")), newJob(r), r.Writes(newStop(r)), remote.Past(newWhy(r))}
}

func newJob(r *remote.Remote) *cobra.Command {
	return usage.Group("job", "Look at jobs, and change one", remote.Past(newPs(r, "job ls")),
		remote.Past(newJobStatus(r)), remote.Past(newJobGraph(r)),
		newJobOutput(r), remote.Past(newJobHistory(r)), remote.Past(newJobDiff(r)), r.Writes(newJobRevert(r)),
		r.Writes(newJobRestart(r)), r.Writes(newJobSuspend(r, false)), r.Writes(newJobSuspend(r, true)),
		newJobUpdate(r))
}

// listing is which jobs a list shows, and how.
type listing struct {
	all          bool
	kind, status string
	sort         string
	limit        int
	after        string
}

// newPs returns "starling ps", or the same as "starling job ls".
func newPs(r *remote.Remote, name string) *cobra.Command {
	l := listing{}
	parts := strings.Fields(name)
	command := &cobra.Command{
		Use:     parts[len(parts)-1] + " [PREFIX]",
		Short:   "List jobs",
		Long:    `List the jobs that have not ended, or with --all also those that have; with PREFIX only those whose names begin so.`,
		Example: "  starling " + name + " analytics/ --type batch --sort age\n  starling " + name + " --limit 100 --after nightly-0099",
		Args: func(command *cobra.Command, args []string) error {
			if err := l.check(); err != nil {
				return usage.Error(command, err)
			}
			return usage.AtMostOne("PREFIX")(command, args)
		},
		ValidArgsFunction: target.CompleteJob(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			prefix := append(args, "")[0]
			answer, err := peer.AllJobs(ctx, prefix)
			if err != nil {
				return err
			}
			found := len(answer.GetJobs())
			hidden, more := l.choose(answer)
			draw := func() *console.Table { return jobTable(answer.GetJobs(), r.Now(answer.GetTime())) }
			if err := r.Show(answer, draw); err != nil || !r.ForPeople() {
				return err
			}
			switch {
			case found == 0 && prefix != "":
				r.Hint("there is no job whose name begins with %q", prefix)
			case hidden > 0:
				r.Hint("%s not shown: --all shows them too", words.Counted(hidden, "ended job"))
			}
			if more != "" {
				r.Hint("there are more: --after %s goes on", more)
			}
			return nil
		}),
	}
	flags := command.Flags()
	flags.BoolVarP(&l.all, "all", "a", false, "show jobs that have ended, too")
	flags.StringVar(&l.kind, "type", "", "only jobs of this `TYPE`: batch, stateless, stateful or daemon")
	flags.StringVar(&l.status, "status", "", "only jobs with this `STATUS`, such as running or failed (which shows ended ones, too)")
	flags.StringVar(&l.sort, "sort", "name", "`ORDER`: "+strings.Join(sorts(), ", "))
	flags.IntVar(&l.limit, "limit", 0, "at most so `MANY` jobs (default: all)")
	flags.StringVar(&l.after, "after", "", "only those that come after this `JOB` in the order")
	return command
}

// check refuses words that no job has.
func (l *listing) check() error {
	for _, flag := range []struct {
		name, text string
		known      []string
	}{
		{"sort", l.sort, sorts()},
		{"type", l.kind, terms.JobTypes()[1:]},
		{"status", l.status, statuses()},
	} {
		if flag.text != "" && !slices.Contains(flag.known, flag.text) {
			return fmt.Errorf("--%s must be one of %s, is %q", flag.name, strings.Join(flag.known, ", "), flag.text)
		}
	}
	return nil
}

// statuses lists the states of jobs.
func statuses() (all []string) {
	for s := workload.StatusPending; s <= workload.StatusIdle; s++ {
		all = append(all, s.String())
	}
	return all
}

// sorts lists the orders of jobs.
func sorts() []string { return []string{"name", "age", "type", "status", "health", "instances"} }

// choose leaves in the answer what is to be shown, in its order. It returns how many are hidden because they have
// ended, and after which job there are more, "" if there are none.
func (l *listing) choose(answer *starlingv1.ListJobsResponse) (hidden int, more string) {
	var chosen []*starlingv1.Job
	for _, job := range answer.GetJobs() {
		switch isOther := l.kind != "" && job.GetType() != l.kind || l.status != "" && job.GetStatus() != l.status; {
		case isOther:
		case draft.HasEnded(job) && !l.all && l.status == "":
			hidden++
		default:
			chosen = append(chosen, job)
		}
	}
	slices.SortStableFunc(chosen, l.compare)
	last := &starlingv1.Job{Name: l.after}
	at := slices.IndexFunc(answer.GetJobs(), func(job *starlingv1.Job) bool { return job.GetName() == l.after })
	if at >= 0 {
		last = answer.GetJobs()[at]
	}
	if at >= 0 || l.sort == "name" { // in another order one that is not there has no place
		chosen = slices.DeleteFunc(chosen, func(job *starlingv1.Job) bool { return l.compare(job, last) <= 0 })
	}
	if l.limit > 0 && len(chosen) > l.limit {
		chosen, more = chosen[:l.limit], chosen[l.limit-1].GetName()
	}
	answer.Jobs = chosen
	return hidden, more
}

// compare orders two jobs: those that need attention come first, then the names.
func (l *listing) compare(a, b *starlingv1.Job) int {
	by := 0
	switch l.sort {
	case "age":
		by = cmp.Compare(b.GetSubmittedIndex(), a.GetSubmittedIndex())
	case "type":
		by = cmp.Compare(a.GetType(), b.GetType())
	case "status":
		by = cmp.Compare(a.GetStatus(), b.GetStatus())
	case "health":
		by = cmp.Compare(unhealthy(b), unhealthy(a))
	case "instances":
		by = cmp.Compare(b.GetCounts().GetDesired(), a.GetCounts().GetDesired())
	}
	return cmp.Or(by, cmp.Compare(a.GetName(), b.GetName()))
}

// unhealthy counts the instances that should be healthy and are not; those of batch jobs need not be.
func unhealthy(job *starlingv1.Job) uint32 {
	c := job.GetCounts()
	if draft.HasEnded(job) || job.GetType() == "batch" {
		return 0
	}
	return c.GetDesired() - min(c.GetDesired(), c.GetRunning()-c.GetNotHealthy())
}

// healthyText tells how many of the wanted instances are healthy: "2/3", "-" if none need be.
func healthyText(job *starlingv1.Job) string {
	wanted := job.GetCounts().GetDesired()
	if draft.HasEnded(job) || job.GetType() == "batch" || wanted == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", wanted-unhealthy(job), wanted)
}

func jobTable(jobs []*starlingv1.Job, now time.Time) *console.Table {
	columns := []string{"JOB", "TYPE", "STATUS", "VERSION", "WANTED", "INSTANCES", "HEALTHY", "AGE", "ENDED"}
	decided := slices.ContainsFunc(jobs, func(job *starlingv1.Job) bool { return job.GetPolicyAction() != nil })
	if decided {
		columns = append(columns, "DECIDED")
	}
	t := console.NewTable(columns...)
	t.Spare = []string{"VERSION", "ENDED", "TYPE", "WANTED"}
	for _, job := range jobs {
		ended := "-"
		if job.GetFinishedAt() != nil {
			ended = age(job.GetFinishedAt(), now) + " ago"
		}
		row := []string{job.GetName(), job.GetType(), job.GetStatus(), strconv.Itoa(int(job.GetVersion())),
			fmt.Sprint(job.GetCounts().GetDesired()), tally(job.GetCounts()), healthyText(job),
			age(job.GetSubmittedAt(), now), ended}
		if decided {
			row = append(row, console.Dash(job.GetPolicyAction().GetText()))
		}
		t.Row(row...)
	}
	return t
}
