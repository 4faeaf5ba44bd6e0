package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
)

func newJobStatus(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "status NAME",
		Short:             "Show a job with its tasks and instances",
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.CompleteJob(r),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			answer, err := target.Status(ctx, r, target.JobName(args[0]), r.ForPeople())
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			return drawJob(r, answer)
		},
	}
}

// drawJob shows a job to people.
func drawJob(r *remote.Remote, answer *starlingv1.JobStatusResponse) error {
	job := answer.GetJob()
	head := console.NewTable("job", job.GetName())
	head.Colour = r.OutColour
	head.Row("type", job.GetType())
	head.Row("status", job.GetStatus())
	if after := answer.GetSpec().GetAfter(); len(after) > 0 {
		head.Row("after", strings.Join(after, ", "))
	}
	head.Row("version", fmt.Sprint(job.GetVersion()))
	if u := job.GetUpdate(); u.GetFrom() != 0 {
		head.Row("update", updateText(u))
	}
	if d := job.GetDeed(); d != nil {
		head.Row("decided", fmt.Sprintf("%s; %s ago, by entry %d", d.GetText(), age(d.GetAt()), d.GetIndex()))
	}
	head.Row("submitted", age(job.GetSubmittedAt())+" ago")
	if job.GetFinishedAt() != nil {
		head.Row("ended", age(job.GetFinishedAt())+" ago")
	}
	for _, task := range answer.GetTasks() {
		if p := task.GetPreemption(); p != nil {
			head.Row("gave way", fmt.Sprintf("%s[%d] %s ago, by entry %d: %s needed its room, and %s",
				task.GetName(), p.GetSlot(), age(p.GetAt()), p.GetIndex(), p.GetBy(), p.GetRule()))
		}
	}
	tasks := console.NewTable("TASK", "STATE", "WANTED", "INSTANCES", "COMMAND")
	tasks.Colour = r.OutColour
	for _, task := range answer.GetTasks() {
		tasks.Row(task.GetName(), stateText(task), fmt.Sprint(task.GetCounts().GetDesired()), tally(task.GetCounts()),
			commandOf(answer, task.GetName()))
	}
	slots := console.NewTable("INSTANCE", "VERSION", "PHASE", "HEALTH", "NODE", "SINCE", "FAILURES", "LAST END", "PORTS",
		"WAITS FOR")
	slots.Colour = r.OutColour
	for _, slot := range answer.GetSlots() {
		slots.Row(seatName(slot), versionText(slot), slot.GetPhase(), healthOf(slot), console.Dash(slot.GetNode()),
			age(slot.GetSince()),
			fmt.Sprint(slot.GetFailures()), endOf(slot), portsOf(slot), console.Dash(slot.GetWaitsFor()))
	}
	for i, t := range []*console.Table{head, tasks, slots} {
		if i > 0 {
			fmt.Fprintln(r.Out)
		}
		if err := t.Write(r.Out); err != nil {
			return err
		}
	}
	if answer.GetNextPageToken() != "" {
		r.Hint("only the first %d instances are shown: -o json shows all", len(answer.GetSlots()))
	}
	if waiting := waitingOf(answer); waiting > 0 {
		r.Hint("%s waiting; the reasons: starling why %s", console.Counted(waiting, "instance"), job.GetName())
	}
	return nil
}

// seatName names one of the allocations of a slot: "server[2]", or "server[2] canary".
func seatName(slot *starlingv1.Slot) string {
	if slot.GetSeat() == "main" {
		return target.SlotName(slot)
	}
	return target.SlotName(slot) + " " + slot.GetSeat()
}

func versionText(slot *starlingv1.Slot) string {
	if slot.GetVersion() == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(slot.GetVersion()), 10)
}

// healthOf tells the health of what runs, or has failed.
func healthOf(slot *starlingv1.Slot) string {
	if slot.GetPhase() != "running" && slot.GetHealth() != "unhealthy" {
		return "-"
	}
	return slot.GetHealth()
}

func commandOf(answer *starlingv1.JobStatusResponse, task string) string {
	const charactersMax = 60
	for _, spec := range answer.GetSpec().GetTasks() {
		if spec.GetName() == task {
			text := []rune(strings.Join(strings.Fields(strings.Join(spec.GetCommand(), " ")), " "))
			if len(text) > charactersMax {
				text = append(text[:charactersMax-1], '…')
			}
			return string(text)
		}
	}
	return "-"
}

// endOf tells how the last allocation ended: "exited with 3".
func endOf(slot *starlingv1.Slot) string {
	switch ended := slot.GetEnded(); ended {
	case "":
		return "-"
	case "exited":
		return fmt.Sprintf("exited with %d", slot.GetExitCode())
	case "killed by a signal":
		return fmt.Sprintf("killed by signal %d", slot.GetExitCode()-128)
	default:
		return ended
	}
}

func portsOf(slot *starlingv1.Slot) string {
	var ports []string
	for _, port := range slot.GetPorts() {
		ports = append(ports, fmt.Sprintf("%s=%d", port.GetName(), port.GetNumber()))
	}
	return console.Dash(strings.Join(ports, " "))
}
