package jobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/schedule/explain/wording"
	"starling/terms"
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
			answer, err := target.Status(ctx, r, target.Target{Job: target.JobName(args[0])}, r.ForPeople())
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			return drawJob(r, answer, target.Uses(ctx, r, answer))
		},
	}
}

// drawJob shows a job to people, with what its instances use, by their allocations, if that is known of any.
func drawJob(r *remote.Remote, answer *starlingv1.JobStatusResponse, uses map[string]*starlingv1.InstanceUse) error {
	r.TellMoment(answer)
	job, now := answer.GetJob(), r.Now(answer.GetTime())
	head := console.NewTable("job", job.GetName())
	head.Row("type", job.GetType())
	head.Row("status", job.GetStatus())
	if after := answer.GetSpec().GetAfter(); len(after) > 0 {
		head.Row("after", strings.Join(after, ", "))
	}
	head.Row("version", fmt.Sprint(job.GetVersion()))
	if u := job.GetUpdate(); isNews(u) {
		head.Row("update", draft.UpdateText(u))
	}
	if d := job.GetPolicyAction(); d != nil {
		head.Row("decided", fmt.Sprintf("%s; %s ago, by entry %d", d.GetText(), age(d.GetAt(), now), d.GetIndex()))
	}
	head.Row("submitted", age(job.GetSubmittedAt(), now)+" ago")
	if job.GetFinishedAt() != nil {
		head.Row("ended", age(job.GetFinishedAt(), now)+" ago")
	}
	for _, task := range answer.GetTasks() {
		if p := task.GetPreemption(); p != nil {
			head.Row("gave way", fmt.Sprintf("%s[%d] %s ago, by entry %d: %s", task.GetName(), p.GetSlot(), age(p.GetAt(), now),
				p.GetIndex(), wording.GaveWay(terms.JobName(job.GetName()), terms.JobName(p.GetBy()), p.GetRule())))
		}
	}
	tasks := console.NewTable("TASK", "STATE", "WANTED", "INSTANCES", "TO DO", "COMMAND")
	for _, task := range answer.GetTasks() {
		tasks.Row(task.GetName(), stateText(task), fmt.Sprint(task.GetCounts().GetDesired()), tally(task.GetCounts()),
			toDo(task.GetChanges()), commandOf(answer, task.GetName()))
	}
	slots := console.NewTable("INSTANCE", "VERSION", "PHASE", "HEALTH", "NODE", "SINCE", "FAILURES", "LAST END", "PORTS",
		"WAITS FOR")
	if len(uses) > 0 {
		slots.Rows[0] = append(slots.Rows[0], "CPU", "MEMORY")
	}
	for _, slot := range answer.GetSlots() {
		slots.Row(seatName(slot), versionText(slot), slot.GetPhase(), healthOf(slot), console.Dash(slot.GetNode()),
			age(slot.GetSince(), now),
			fmt.Sprint(slot.GetFailures()), endOf(slot), portsOf(slot), console.Dash(console.Times(slot.GetWaitsFor(), now)))
		if last := len(slots.Rows) - 1; len(uses) > 0 {
			use := uses[slot.GetAllocation()]
			slots.Rows[last] = append(slots.Rows[last], target.Beside(use, terms.CPU), target.Beside(use, terms.Memory))
		}
	}
	head.Whole = true
	tasks.Spare, slots.Spare = []string{"TO DO"}, []string{"VERSION", "FAILURES", "WAITS FOR", "LAST END", "PORTS"}
	if err := r.Tables(head, tasks, slots); err != nil {
		return err
	}
	if answer.GetNextPageToken() != "" {
		r.Hint("only the first %d instances are shown: -o json shows all", len(answer.GetSlots()))
	}
	if waiting := waitingOf(answer); waiting > 0 {
		r.Hint("%s waiting; the reasons: starling why %s", words.Counted(waiting, "instance"), job.GetName())
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
			program := slices.Concat(spec.GetCommand(), spec.GetContainer().GetArguments())
			if image := spec.GetContainer().GetImage(); image != "" {
				program = slices.Insert(program, 0, shortImage(image)+":")
			}
			text := []rune(strings.Join(strings.Fields(strings.Join(program, " ")), " "))
			if len(text) > charactersMax {
				text = append(text[:charactersMax-1], '…')
			}
			return string(text)
		}
	}
	return "-"
}

// shortImage is the name of an image with as much of its digest as tells it from others.
func shortImage(name string) string {
	const hexes = 12
	tagged, sum, _ := strings.Cut(name, "@")
	_, hex, isDigest := strings.Cut(sum, ":")
	if !isDigest || len(hex) <= hexes {
		return name
	}
	return tagged + "@" + hex[:hexes]
}

// imagesOf names the images of a job's tasks, each once.
func imagesOf(spec *starlingv1.JobSpec) string {
	var all []string
	for _, t := range spec.GetTasks() {
		if name := shortImage(t.GetContainer().GetImage()); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
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

func newWhy(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "why NAME[.TASK]",
		Short: "Tell every reason why something of a job does not run yet",
		Long: `Tell every reason why something of a job does not run yet, not only the first: what no machine has, what is too
small by how much, and what is waited for; of its pool what it may hold and holds, which jobs come first, what gives way to
the job or is protected from that, and what would help. With a TASK, or an instance of one, it is only about that task.`,
		Args:              usage.OneArgument("job's NAME"),
		ValidArgsFunction: target.Complete(r),
		RunE: func(command *cobra.Command, args []string) error {
			readings, err := target.Parse(args[0])
			if err != nil {
				return usage.Error(command, err)
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			t, err := target.Resolve(ctx, r, readings)
			if err != nil {
				return err
			}
			answer, err := why(ctx, r, t)
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			r.TellMoment(answer)
			return r.Print(findings(answer, r.Now(answer.GetTime())))
		},
	}
}

// why asks about a job, or one of its tasks.
func why(ctx context.Context, r *remote.Remote, t target.Target) (*starlingv1.WhyResponse, error) {
	peer, err := r.Dial()
	if err != nil {
		return nil, err
	}
	answer, err := peer.Why(ctx, &starlingv1.WhyRequest{Job: t.Job})
	if err != nil || t.Task == "" {
		return answer, err
	}
	status, err := target.Known(ctx, peer, t.Job)
	if err == nil {
		err = t.CheckInstance(status)
	}
	answer.Findings = slices.DeleteFunc(answer.GetFindings(),
		func(f *starlingv1.Finding) bool { return f.GetTask() != "" && f.GetTask() != t.Task })
	return answer, err
}

// findings tells an answer to "why" to people.
func findings(answer *starlingv1.WhyResponse, now time.Time) string {
	text := strings.Builder{}
	job := answer.GetJob()
	fmt.Fprintf(&text, "%s is %s: %d wanted, %s\n", job.GetName(), job.GetStatus(), job.GetCounts().GetDesired(),
		tally(job.GetCounts()))
	if len(answer.GetFindings()) == 0 && !job.GetFinal() {
		fmt.Fprintln(&text, "nothing keeps it from running")
	}
	for _, f := range answer.GetFindings() {
		whose := ""
		switch {
		case f.GetTask() != "" && f.GetInstances() == 0:
			whose = f.GetTask() + ": "
		case f.GetTask() != "":
			whose = fmt.Sprintf("%s, %s, [%d]%s: ", f.GetTask(), words.Counted(f.GetInstances(), "instance"), f.GetSlot(),
				map[bool]string{true: " first"}[f.GetInstances() > 1])
		}
		fmt.Fprintf(&text, "\n%s%s\n", whose, console.Times(f.GetReason(), now))
		for _, detail := range f.GetDetails() {
			fmt.Fprintf(&text, "  %s\n", console.Times(detail, now))
		}
		if f.GetSince() != nil {
			fmt.Fprintf(&text, "  for %s", age(f.GetSince(), now))
			if f.GetUntil() != nil {
				fmt.Fprintf(&text, ", until %s", console.Clock(f.GetUntil().AsTime(), now))
			}
			fmt.Fprintln(&text)
		}
	}
	return text.String()
}

// span is a duration as people say it: its two largest units.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// age is the time from a moment until now, "-" if that is not known.
func age(since *timestamppb.Timestamp, now time.Time) string {
	if since == nil {
		return "-"
	}
	return span(now.Sub(since.AsTime()))
}

// noInstances is the tally of a task without any.
const noInstances = "no instances"

// tally tells how many slots are in which phase, for example "2 running, 1 waiting".
func tally(c *starlingv1.Counts) string {
	parts := []string{}
	for _, p := range []struct {
		count uint32
		phase string
	}{
		{c.GetRunning(), "running"}, {c.GetAssigned(), "starting"}, {c.GetWaiting(), "waiting"},
		{c.GetBackingOff(), "backing off"}, {c.GetRescheduling(), "rescheduling"}, {c.GetUnknown(), "unknown"},
		{c.GetStopping(), "stopping"}, {c.GetSucceeded(), "succeeded"},
		{c.GetFailed(), "failed"}, {c.GetStopped(), "stopped"},
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.count, p.phase))
		}
		if p.phase == "running" && c.GetNotHealthy() > 0 {
			parts[0] += fmt.Sprintf(" (%d not healthy)", c.GetNotHealthy())
		}
	}
	if len(parts) == 0 {
		return noInstances
	}
	return strings.Join(parts, ", ")
}

// isNews tells whether an update is worth a word: that of a first version only as long as it has not succeeded.
func isNews(u *starlingv1.Update) bool {
	return u.GetFrom() != 0 || u != nil && u.GetState() != draft.Succeeded
}

// toDo tells what is still to be done for a task.
func toDo(c *starlingv1.TaskChanges) string {
	var parts []string
	for _, p := range []struct {
		count uint32
		what  string
	}{{c.GetPlace(), "place"}, {c.GetReplace(), "replace"}, {c.GetStop(), "stop"}, {c.GetCanaries(), "canaries"}} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.count))
		}
	}
	return console.Dash(strings.Join(parts, ", "))
}

// tallyOf tells how many slots of a job are in which phase. Those of tasks that wait for others count by themselves.
func tallyOf(status *starlingv1.JobStatusResponse) string {
	waiting := waitingOf(status)
	held := status.GetJob().GetCounts().GetWaiting() - waiting
	if held == 0 {
		return tally(status.GetJob().GetCounts())
	}
	c := proto.CloneOf(status.GetJob().GetCounts())
	c.Waiting = waiting
	later := fmt.Sprintf("%d blocked by dependencies", held)
	if text := tally(c); text != noInstances {
		return text + ", " + later
	}
	return later
}

// waitingOf counts the instances that wait for room, and not for other tasks.
func waitingOf(status *starlingv1.JobStatusResponse) uint32 {
	waiting := status.GetJob().GetCounts().GetWaiting()
	for _, task := range status.GetTasks() {
		if task.GetState() == "held" {
			waiting -= min(waiting, task.GetCounts().GetWaiting())
		}
	}
	return waiting
}
