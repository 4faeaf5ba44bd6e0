package jobs

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

// The states of jobs of which nothing is wanted for now: their users said so, they have no instances, or are daemons
// that no machine takes.
const (
	suspended = "suspended"
	idle      = "idle"
	pending   = "pending"
)

// linesShownMax bounds the instances that are shown at a time; those that are done give way.
const linesShownMax = 30

func newUpdateWatch(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow the update of a job, instance by instance, until it ends",
		Long: `Follow the update of a job until it ends: for each instance its version and the one it goes to, how far and how well it
is, and what it waits for. The exit status is 0 if the update succeeded, and 1 if it failed or was ended.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			following, interrupted, release := console.Attached(command.Context(), 0)
			defer release()
			p := console.NewProgress(r.Console, nil)
			var last *starlingv1.Job
			question := &starlingv1.JobStatusRequest{Job: target.JobName(args[0]), PageSize: target.SlotsShownMax}
			err = peer.FollowJob(following, question, func(status *starlingv1.JobStatusResponse) (bool, error) {
				last = status.GetJob()
				watchUpdate(p, status)
				return last.GetUpdate().GetFinal() || last.GetUpdate() == nil || last.GetFinal(), nil
			})
			switch {
			case interrupted():
				return exit.Silent(exit.Detached)
			case err != nil:
				return err
			}
			p.Clear()
			if err := r.ShowNext(last, func() string {
				return last.GetName() + ": " + draft.UpdateText(last.GetUpdate()) +
					"\n"
			}); err != nil {
				return err
			}
			if u := last.GetUpdate(); u != nil && u.GetState() != draft.Succeeded {
				return exit.Silent(exit.Failed)
			}
			return nil
		},
	}
}

// watchUpdate shows an update with a line for each instance.
func watchUpdate(p *console.Progress, status *starlingv1.JobStatusResponse) {
	u := status.GetJob().GetUpdate()
	names, texts := []string{status.GetJob().GetName()}, []string{""}
	done, hidden := 0, 0
	for _, slot := range status.GetSlots() {
		isDone := slot.GetWaitsFor() == "" && slot.GetVersion() == u.GetTo()
		if isDone {
			done++
		}
		if isDone && p.ErrLive && len(status.GetSlots()) > linesShownMax || len(names) > linesShownMax && p.ErrLive {
			hidden++
			continue
		}
		names, texts = append(names, seatName(slot)), append(texts, slotProgress(slot, u))
	}
	texts[0] = fmt.Sprintf("%s, %d of %s done", draft.UpdateText(u), done,
		words.Counted(len(status.GetSlots()), "instance"))
	if hidden > 0 {
		texts[0] += fmt.Sprintf(", %d not shown", hidden)
	}
	p.Show(names, texts)
}

// slotProgress says how far an instance is: "version 1 -> 2, running on a, ready, waits for its health, at 12:00:05
// UTC".
func slotProgress(slot *starlingv1.Slot, u *starlingv1.Update) string {
	parts := []string{fmt.Sprintf("version %d", cmp.Or(slot.GetVersion(), u.GetTo()))}
	if slot.GetVersion() != 0 && slot.GetVersion() != u.GetTo() && !u.GetFinal() {
		parts[0] += fmt.Sprintf(" -> %d", u.GetTo())
	}
	where := slot.GetPhase()
	if slot.GetNode() != "" && slot.GetPhase() != "waiting" {
		where += " on " + slot.GetNode()
	}
	parts = append(parts, where)
	if health := healthOf(slot); health != "-" {
		parts = append(parts, health)
	}
	if slot.GetWaitsFor() != "" {
		parts = append(parts, "waits for "+console.Times(slot.GetWaitsFor(), time.Now()))
	}
	return strings.Join(parts, ", ")
}
