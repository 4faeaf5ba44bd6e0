package jobs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/jobspec"
	"starling/terms"
)

func newScale(r *remote.Remote) *cobra.Command {
	options := runOptions{}
	command := &cobra.Command{
		Use:   "scale JOB[/TASK]=NUMBER...",
		Short: "Change how many instances tasks of a job have",
		Long: `Change how many instances tasks of a job have, in one new version of the job, in which nothing else changes. What runs
goes on; of instances that are too many the highest numbers stop. A min_available that was as large as the number stays so.
While an update of the job is paused it stays paused, and the number changes when it is resumed.

What is to be added is admitted as the job's pool has room for it, and waits until then, which is explained after a few
seconds; what runs does not suffer from that. To take it back, scale to the number before.

A job of one task needs no TASK. If there is a job of the name JOB/TASK, that is meant; JOB.TASK is always a task.
Ctrl-C detaches: the change goes on.`,
		Example:           "  starling scale train/worker=8\n  starling scale shop/web=6 shop/cache=2 --detach",
		ValidArgsFunction: target.Complete(r),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Error(command, fmt.Errorf("%s needs a JOB and a NUMBER, as in train/worker=8", command.CommandPath()))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			job, sizes, err := sizesOf(command, r, args)
			if err != nil {
				return err
			}
			return scale(command.Context(), r, job, sizes, options)
		},
	}
	options.flags(command)
	command.Flags().Var(&options.against, "against", "only if the job still has this `VERSION` (default: the present one)")
	return command
}

// sizesOf reads what the tasks of one job are to have.
func sizesOf(command *cobra.Command, r *remote.Remote, args []string) (job string, sizes []jobspec.Size, err error) {
	integer := regexp.MustCompile(`^[+-]?\d+$`)
	for _, arg := range args {
		name, text, found := strings.Cut(arg, "=")
		number, wrong := strconv.ParseUint(text, 10, 32)
		readings, unnamed := target.Parse(name)
		readings = slices.DeleteFunc(readings, func(t target.Target) bool { return t.Number >= 0 })
		switch {
		case !found || unnamed != nil || len(readings) == 0 || wrong != nil && !integer.MatchString(text):
			return "", nil, usage.Error(command, fmt.Errorf("%q is not a JOB=NUMBER or JOB/TASK=NUMBER", arg))
		case wrong != nil || number > terms.InstancesMax:
			return "", nil, usage.Error(command, fmt.Errorf("%q: the NUMBER must be from 0 to %d", arg, terms.InstancesMax))
		}
		which, err := target.Resolve(command.Context(), r, readings)
		if err != nil {
			return "", nil, err
		}
		if job != "" && which.Job != job {
			return "", nil, usage.Error(command, fmt.Errorf("%s and %s are two jobs: scale one after the other", job, which.Job))
		}
		job = which.Job
		sizes = append(sizes, jobspec.Size{Task: terms.TaskName(which.Task), Instances: uint32(number)})
	}
	return job, sizes, nil
}

// scale submits the job with its new numbers, against the version that they were made of, and follows it.
func scale(ctx context.Context, r *remote.Remote, job string, sizes []jobspec.Size, options runOptions) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	status, err := target.Known(ctx, peer, job)
	if err != nil {
		return err
	}
	earlier, err := earlierVersions(ctx, peer, status)
	if err != nil {
		return err
	}
	spec, err := rescaled(job, status, earlier, sizes)
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
	_, err = peer.SubmitJob(ctx, spec, options.against.Number)
	if err := stale(ctx, peer, job, options.against.Number, err); err != nil {
		return err
	}
	if status.GetJob().GetUpdate().GetState() == paused {
		r.Hint("%s: its update is paused, and stays so: the new number comes with `starling job update resume %s`", job, job)
		options.detach = true
	}
	t := newTracker(peer, console.NewProgress(r.Console, []string{job}), []string{job})
	t.reached = scaled
	return followOne(ctx, r, t, options)
}

// rescaled returns the job with its new numbers, nil if it has them already.
func rescaled(job string, status *starlingv1.JobStatusResponse, earlier []*terms.Job,
	sizes []jobspec.Size) (*terms.Job, error) {
	now := status.GetJob()
	switch {
	case status == nil:
		return nil, fmt.Errorf("there is no job %s: `starling ps` lists them", job)
	case now.GetStatus() == "stopping", now.GetFinal() && (now.GetType() == "batch" || now.GetStatus() == "stopped"):
		return nil, exit.Fail(exit.Conflict,
			"job %s is %s, so it is not scaled any more: `starling run FILE` starts it again", job, now.GetStatus())
	}
	old, problems := wire.SpecOf(status.GetSpec())
	if len(problems) > 0 {
		return nil, fmt.Errorf("job %s: %s %s", job, problems[0].Path, problems[0].Reason)
	}
	for _, task := range status.GetTasks() {
		isMeant := func(s jobspec.Size) bool {
			return string(s.Task) == task.GetName() || s.Task == "" && len(status.GetTasks()) == 1
		}
		if task.GetSealedBy() != "" && slices.ContainsFunc(sizes, isMeant) {
			return nil, exit.Fail(exit.Conflict,
				"task %s of job %s is not scaled any more: %s has sealed it, so that no instance of it begins",
				task.GetName(), job, task.GetSealedBy())
		}
	}
	spec, err := jobspec.Scaled(old, earlier, sizes)
	switch {
	case err != nil:
		return nil, exit.Fail(exit.Usage, "%w", err)
	case spec.Equal(old):
		return nil, nil
	}
	return spec, nil
}

// earlierVersions returns the versions of a job before the present one, the newest first, if it has a task without
// instances.
func earlierVersions(ctx context.Context, peer *client.Client,
	status *starlingv1.JobStatusResponse) (earlier []*terms.Job, err error) {
	if !slices.ContainsFunc(status.GetSpec().GetTasks(),
		func(t *starlingv1.TaskSpec) bool { return t.GetInstances() == 0 }) {
		return nil, nil
	}
	history, err := peer.JobHistory(ctx, terms.JobName(status.GetJob().GetName()))
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(history.GetVersions()) {
		if spec, problems := wire.SpecOf(v.GetSpec()); len(problems) == 0 && v.GetNumber() < status.GetJob().GetVersion() {
			earlier = append(earlier, spec)
		}
	}
	return earlier, nil
}

// scaled tells whether a job has as many instances as it is to have, and nothing is on its way. What is to come after
// other tasks is not waited for, nor the update of a batch job, which ends with its tasks.
func scaled(status *starlingv1.JobStatusResponse) bool {
	job := status.GetJob()
	c, u := job.GetCounts(), job.GetUpdate()
	moving := waitingOf(status) + c.GetAssigned() + c.GetBackingOff() + c.GetStopping()
	updates := job.GetType() != "batch" && u.GetFrom() != 0 && !u.GetFinal() && u.GetState() != paused
	return job.GetFinal() || rests(job) || !updates && moving == 0
}
