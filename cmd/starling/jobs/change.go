package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/command"
	"starling/terms"
)

func newJobRevert(r *remote.Remote) *cobra.Command {
	options := runOptions{}
	revert := &cobra.Command{
		Use:   "revert NAME VERSION",
		Short: draft.RevertWords,
		Long: `Make a copy of an earlier version the newest, as if its file were run again; the update is made as that version says.
"starling job history NAME" lists the versions.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Error(command, fmt.Errorf("%s needs a job's NAME and a VERSION", command.CommandPath()))
			}
			return nil
		},
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			version, err := versionOf(command, args[1])
			if err != nil {
				return err
			}
			job := target.JobName(args[0])
			return change(command.Context(), r, job, options, func(peer *client.Client, against uint32) (remote.Taken, error) {
				taken, err := peer.RevertJob(command.Context(), terms.JobName(job), against, version)
				if refused := (*wire.Failure)(nil); errors.As(err, &refused) && strings.HasSuffix(refused.Reason, "is not kept") {
					return nil, fmt.Errorf("%w: `starling job history %s` lists those that are", err, job)
				}
				return taken, cmp.Or(err, changed(command.Context(), peer, job, against))
			})
		},
	}
	options.flags(revert)
	revert.Flags().Var(&options.against, "against", "only if the job still has this `VERSION` (default: the present one)")
	return revert
}

func newJobRestart(r *remote.Remote) *cobra.Command {
	options := runOptions{}
	which := several{verb: "restart"}
	restart := &cobra.Command{
		Use:   "restart NAME[.TASK]...",
		Short: "Replace the instances of jobs, or of single tasks, by new ones",
		Long: `Replace the instances of jobs, or of single tasks, by new ones of the same version. It is an update: as many at a
time as the job says, and not more without health. If there is a job of the name NAME/TASK, that is meant; NAME.TASK is
always a task. A NAME with * or ? stands for all jobs that it matches, after a question.`,
		Args:              needsNames("job's NAME, or NAME.TASK"),
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			var all []target.Target
			for _, arg := range args {
				some, err := which.targets(command, r, arg)
				if err != nil {
					return err
				}
				if len(some) == 0 {
					return usage.Error(command, fmt.Errorf(
						"%q names no job or task: write NAME or NAME.TASK; starling alloc restart restarts one instance", arg))
				}
				all = append(all, some...)
			}
			return each(all, func(one target.Target) error {
				restart := func(peer *client.Client, against uint32) (remote.Taken, error) {
					return peer.RestartJob(command.Context(), terms.JobName(one.Job), terms.TaskName(one.Task), against)
				}
				return change(command.Context(), r, one.Job, options, restart)
			})
		},
	}
	options.flags(restart)
	which.flags(restart)
	return restart
}

// newJobSuspend returns the command that suspends a job, or the one that resumes it.
func newJobSuspend(r *remote.Remote, resume bool) *cobra.Command {
	options := runOptions{detach: true}
	suspend := &cobra.Command{
		Use:   "suspend NAME",
		Short: draft.SuspendWords,
		Long: `End all instances of a job as if it were stopped, and start none until "starling job resume" lets it go on. What has
succeeded stays so. The job keeps its name, its versions and its place in the queue of its pool, and can be changed meanwhile.`,
	}
	if resume {
		suspend.Use, suspend.Short, suspend.Long = "resume NAME", draft.ResumeWords, ""
		options.detach = false
		options.flags(suspend)
	}
	suspend.Args = usage.OneArgument("job's NAME")
	suspend.ValidArgsFunction = target.CompleteJob(r)
	suspend.RunE = func(command *cobra.Command, args []string) error {
		job := string(target.JobName(args[0]))
		return change(command.Context(), r, job, options, func(peer *client.Client, against uint32) (remote.Taken, error) {
			return peer.SuspendJob(command.Context(), terms.JobName(job), against, resume)
		})
	}
	suspend.Flags().Var(&options.against, "against", "only if the job still has this `VERSION` (default: the present one)")
	return suspend
}

// errUnchanged is that of a change which changes nothing.
var errUnchanged = errors.New("nothing has changed")

// changed returns errUnchanged if a job has the same version as before.
func changed(ctx context.Context, peer *client.Client, job string, before uint32) error {
	status, err := target.Known(ctx, peer, job)
	if err == nil && status.GetJob().GetVersion() == before {
		return errUnchanged
	}
	return err
}

// change makes a change against the version that a job has now, or that is stated, and follows it.
func change(ctx context.Context, r *remote.Remote, job string, options runOptions,
	make func(peer *client.Client, against uint32) (remote.Taken, error)) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	if !options.against.Given {
		status, err := living(ctx, peer, job)
		if err != nil {
			return err
		}
		options.against.Number = status.GetJob().GetVersion()
	}
	taken, err := make(peer, options.against.Number)
	if errors.Is(err, errUnchanged) {
		r.Hint("%s: nothing has changed, it keeps version %d, which says the same\n"+
			"hint: starling job restart %s replaces what runs an older version", job, options.against.Number, job)
		return nil
	}
	if err := stale(ctx, peer, job, options.against.Number, err); err != nil {
		return err
	}
	if options.detach {
		return r.ShowTaken(taken)
	}
	t := newTracker(peer, console.NewProgress(r.Console, []string{job}), []string{job})
	return follow(ctx, r, t, options.timeout, following{t.wait, results})
}

// living returns how a job stands that has not ended.
func living(ctx context.Context, peer *client.Client, job string) (*starlingv1.JobStatusResponse, error) {
	status, err := target.Known(ctx, peer, job)
	switch {
	case err != nil:
		return nil, err
	case status == nil:
		return nil, fmt.Errorf("there is no job %s: `starling ps` lists them", job)
	case draft.HasEnded(status.GetJob()):
		return nil, exit.Fail(exit.Conflict, "job %s has ended already: %s", job, status.GetJob().GetStatus())
	}
	return status, nil
}

func newJobUpdate(r *remote.Remote) *cobra.Command {
	update := usage.Group("update", "Steer and watch the update of a job to a new version", newUpdateWatch(r))
	for _, one := range draft.Steerings() {
		update.AddCommand(r.Writes(&cobra.Command{
			Use:               one.How.String() + " NAME",
			Short:             one.Words,
			Args:              usage.OneArgument("job's NAME"),
			ValidArgsFunction: target.CompleteJob(r),
			RunE: func(command *cobra.Command, args []string) error {
				ctx, cancel := remote.AnswerContext(command)
				defer cancel()
				return steer(ctx, r, target.JobName(args[0]), one.How, one.After)
			},
		}))
	}
	return update
}

func steer(ctx context.Context, r *remote.Remote, job string, steering command.Steering, after string) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	status, err := living(ctx, peer, job)
	if err != nil {
		return err
	}
	answer, err := peer.SteerUpdate(ctx, terms.JobName(job), status.GetJob().GetVersion(), steering)
	if err != nil {
		return err
	}
	return r.ShowNext(answer, func() string {
		return fmt.Sprintf("%s: the update to version %d is %s\n", job, status.GetJob().GetVersion(), after)
	})
}

func newStop(r *remote.Remote) *cobra.Command {
	detach, now, timeout, against := false, false, time.Duration(0), usage.Version{}
	which := several{verb: "stop"}
	command := &cobra.Command{
		Use:   "stop NAME...",
		Short: "Stop jobs for good",
		Long: `Stop jobs for good and wait until they have ended: instances leave DNS and all lists of addresses,
get their stop_signal (SIGTERM) after the stop_delay of their job file, and SIGKILL after its stop_grace; with --now at
once. What volumes hold is kept, and a job that is run under the same name finds it: "starling volume ls" lists it.
A NAME with * or ? stands for all jobs that it matches, after a question.`,
		Example:           "  starling stop web\n  starling stop 'nightly-*' 'analytics/*' --yes",
		Args:              needsNames("job's NAME"),
		ValidArgsFunction: target.CompleteJobs(r),
		RunE: func(command *cobra.Command, args []string) error {
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			jobs, err := which.jobs(command.Context(), r, peer, args)
			if err != nil {
				return err
			}
			if against.Given && len(jobs) > 1 {
				return usage.Error(command, fmt.Errorf("--against states the version of one job, not of %d", len(jobs)))
			}
			ordered := jobs[:0:0]
			err = each(jobs, func(job string) error {
				answer, err := peer.KillJob(command.Context(), terms.JobName(job), against.Number, now)
				if against.Given {
					err = stale(command.Context(), peer, job, against.Number, err)
				}
				if err != nil {
					return err
				}
				if ordered = append(ordered, job); detach {
					return r.ShowAnswer(answer)
				}
				return nil
			})
			if detach || len(ordered) == 0 {
				return err
			}
			t := newTracker(peer, console.NewProgress(r.Console, ordered), ordered)
			return errors.Join(err, waitStopped(command.Context(), r, t, timeout))
		},
	}
	command.Flags().Var(&against, "against", "only if the job still has this `VERSION`")
	command.Flags().BoolVarP(&detach, "detach", "d", false, "return when the order is given")
	command.Flags().BoolVar(&now, "now", false, "kill what runs, and what is being stopped already")
	usage.Wait(command.Flags(), &timeout, "timeout", "stop waiting after this `DURATION`")
	which.flags(command)
	return command
}

// waitStopped waits until all jobs have ended, and names them.
func waitStopped(ctx context.Context, r *remote.Remote, t *tracker, timeout time.Duration) error {
	following, interrupted, release := console.Attached(ctx, timeout)
	defer release()
	t.reached = func(status *starlingv1.JobStatusResponse) bool { return draft.HasEnded(status.GetJob()) }
	err := t.wait(following)
	for _, job := range t.jobs {
		switch {
		case interrupted():
			r.Hint("\ndetached; %s goes on stopping", job.name)
		case err == nil:
			err = r.ShowNext(job.last, func() string { return job.name + "\n" })
			tellKept(r, job.last.GetSpec())
		}
	}
	switch {
	case interrupted():
		return exit.Silent(exit.Detached)
	case err != nil:
		return t.outOfTime(err, timeout)
	}
	return nil
}

// tellKept tells what becomes of what a job that has ended has in its volumes.
func tellKept(r *remote.Remote, spec *starlingv1.JobSpec) {
	var keeps []int64 // of each task with volumes, in milliseconds
	for _, t := range spec.GetTasks() {
		if len(t.GetVolumes()) > 0 {
			keeps = append(keeps, cmp.Or(t.GetKeepVolumesMillis(), math.MaxInt64))
		}
	}
	if len(keeps) == 0 {
		return
	}
	long := ""
	if least := slices.Min(keeps); least < math.MaxInt64 {
		if long = " for " + terms.FormatDuration(least); slices.Max(keeps) > least {
			long += " at least"
		}
	}
	r.Hint("what its volumes hold is kept%[2]s: the next job %[1]s finds it, and `starling volume rm %[1]s` deletes it",
		spec.GetName(), long)
}
