package jobs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/jobspec/sizing"
	"starling/terms"
)

func newScale(r *remote.Remote) *cobra.Command {
	options := runOptions{}
	which := several{verb: "scale"}
	command := &cobra.Command{
		Use:   "scale JOB[.TASK]=NUMBER...",
		Short: "Change how many instances tasks have",
		Long: `Change how many instances tasks have, in one new version of each job, in which nothing else changes. What runs
goes on; of instances that are too many the highest numbers stop. A min_available that was as large as the number stays so.
While an update of the job is paused it stays paused, and the number changes when it is resumed. A job of which an update
was aborted, or has failed, while others of its versions run is not scaled: revert it, or run its file. Where canaries come
first that only a user promotes, this command ends when they are healthy, and says how: starling job update promote.

What is to be added is admitted as the job's pool has room for it, and waits until then, which is explained after a few
seconds; what runs does not suffer from that. To take it back, scale to the number before.

A job of one task needs no TASK. JOB/TASK is a task, too, unless there is a job of that name. A JOB with * or ? stands for
all jobs that it matches, after a question. Ctrl-C detaches: the change goes on.`,
		Example:           "  starling scale train.worker=8\n  starling scale shop.web=6 shop.cache=2 --detach",
		ValidArgsFunction: target.Complete(r),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Error(command, fmt.Errorf("%s needs a JOB and a NUMBER, as in train/worker=8", command.CommandPath()))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			all, err := sizesOf(command, r, &which, args)
			if err != nil {
				return err
			}
			if options.against.Given && len(all) > 1 {
				return usage.Error(command, fmt.Errorf("--against states the version of one job, not of %d", len(all)))
			}
			return each(all, func(one resized) error { return scale(command.Context(), r, one.job, one.sizes, options) })
		},
	}
	which.flags(command)
	options.flags(command)
	command.Flags().Var(&options.against, "against", "only if the job still has this `VERSION` (default: the present one)")
	return command
}

// resized is a job with what some of its tasks are to have.
type resized struct {
	job   string
	sizes []sizing.Size
}

// sizesOf reads what the tasks of jobs are to have, the jobs in the order in which they are named.
func sizesOf(command *cobra.Command, r *remote.Remote, which *several, args []string) (all []resized, err error) {
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		number, err := numberOf(arg, text)
		if err != nil {
			return nil, usage.Error(command, err)
		}
		chosen, err := which.targets(command, r, name)
		if err != nil {
			return nil, err
		}
		if len(chosen) == 0 {
			return nil, usage.Error(command, errNotSize(arg))
		}
		for _, one := range chosen {
			size := sizing.Size{Task: terms.TaskName(one.Task), Instances: number}
			at := slices.IndexFunc(all, func(known resized) bool { return known.job == one.Job })
			if at < 0 {
				at, all = len(all), append(all, resized{job: one.Job})
			}
			all[at].sizes = append(all[at].sizes, size)
		}
	}
	return all, nil
}

func errNotSize(arg string) error {
	return fmt.Errorf("%q is not a JOB=NUMBER or JOB.TASK=NUMBER, such as web=3", arg)
}

// numberOf reads how many instances an argument wants.
func numberOf(arg, text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	switch isInteger := regexp.MustCompile(`^[+-]?\d+$`).MatchString(text); {
	case err != nil && !isInteger:
		return 0, errNotSize(arg)
	case err != nil || number > terms.InstancesMax:
		return 0, fmt.Errorf("%q: the NUMBER must be from 0 to %d", arg, terms.InstancesMax)
	}
	return uint32(number), nil
}

// scale submits the job with its new numbers, against the version that they were made of, and follows it.
func scale(ctx context.Context, r *remote.Remote, job string, sizes []sizing.Size, options runOptions) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	status, err := target.Known(ctx, peer, job)
	if err != nil {
		return err
	}
	if status == nil {
		return fmt.Errorf("there is no job %s: `starling ps` lists them", job)
	}
	spec, err := draft.Scaled(ctx, peer, status, sizes)
	if err != nil {
		return err
	}
	if !options.against.Given {
		options.against.Number = status.GetJob().GetVersion()
	}
	if spec == nil {
		r.Hint("%s: nothing has changed, it keeps version %d", job, status.GetJob().GetVersion())
		return nil
	}
	taken, err := peer.SubmitJob(ctx, spec, options.against.Number)
	if err := stale(ctx, peer, job, options.against.Number, err); err != nil {
		return err
	}
	if status.GetJob().GetUpdate().GetState() == draft.Paused {
		r.Hint("%s: its update is paused, and stays so: the new number comes with `starling job update resume %s`", job, job)
		options.detach = true
	}
	if options.detach {
		return r.ShowTaken(taken)
	}
	t := newTracker(peer, console.NewProgress(r.Console, []string{job}), []string{job})
	t.reached = scaled
	return follow(ctx, r, t, options.timeout, following{t.wait, results})
}

// scaled tells whether a job has as many instances as it is to have, and nothing is on its way. What is to come after
// other tasks is not waited for, nor the update of a batch job, which ends with its tasks.
func scaled(status *starlingv1.JobStatusResponse) bool {
	job := status.GetJob()
	c, u := job.GetCounts(), job.GetUpdate()
	moving := waitingOf(status) + c.GetAssigned() + c.GetBackingOff() + c.GetStopping()
	updates := job.GetType() != "batch" && u.GetTo() != 0 && !u.GetFinal() && !awaitsUser(status)
	return job.GetFinal() || rests(job) || !updates && moving == 0
}
