package jobs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newStop(r *remote.Remote) *cobra.Command {
	detach, timeout, against := false, time.Duration(0), usage.Version{}
	command := &cobra.Command{
		Use:   "stop NAME",
		Short: "Stop a job for good",
		Long: `Stop a job for good and wait until all of it has ended: its instances leave DNS and all lists of
addresses, get SIGTERM after the stop_delay of their job file, and SIGKILL after its stop_grace.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			job := target.JobName(args[0])
			_, err = peer.KillJob(command.Context(), terms.JobName(job), against.Number)
			if against.Given {
				err = stale(command.Context(), peer, job, against.Number, err)
			}
			if err != nil {
				return err
			}
			if detach {
				return nil
			}
			following, interrupted, release := console.Attached(command.Context(), timeout)
			defer release()
			t := newTracker(peer, console.NewProgress(r.Console, []string{job}), []string{job})
			t.reached = func(status *starlingv1.JobStatusResponse) bool { return status.GetJob().GetFinal() }
			err = t.wait(following)
			switch {
			case interrupted():
				r.Hint("\ndetached; %s goes on stopping", job)
				return exit.Silent(exit.Detached)
			case err != nil:
				return t.outOfTime(err, timeout)
			}
			return r.ShowNext(t.jobs[0].last, func() string { return fmt.Sprintf("%s\n", job) })
		},
	}
	command.Flags().Var(&against, "against", "only if the job still has this `VERSION`")
	command.Flags().BoolVarP(&detach, "detach", "d", false, "return when the order is given")
	command.Flags().DurationVar(&timeout, "timeout", 0, "stop waiting after this `DURATION`")
	return command
}
