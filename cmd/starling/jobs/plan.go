package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

func newPlan(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "plan FILE.yaml",
		Short: "Tell what running a job file would do, and do nothing",
		Long: `Tell what running a job file (- for standard input) would do, and do nothing: what differs from the present version, and
which instances would be placed, replaced, updated in place and stopped, where, and in which order if all goes well. It is the
scheduler that answers; what happens can differ only if the cluster changes meanwhile. Each job of the file is planned as if it
came alone, and one that comes after another of them not before that is done.

The exit status is 0 if nothing would change and 1 if something would.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			documents, err := files.Jobs(r.Console, args[0], nothingSubmitted)
			if err != nil {
				return err
			}
			ctx, cancel := remote.AnswerContext(command)
			defer cancel()
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			changes, brought := false, map[terms.JobName]bool{}
			for i := range documents {
				if first := firstOf(documents[i].Spec.After, brought); first != "" {
					r.Hint("%s: comes after %s, which this file brings or changes: it can be planned when that is done",
						documents[i].Spec.Name, first)
					changes, brought[documents[i].Spec.Name] = true, true
					continue
				}
				answer, err := peer.PlanJob(ctx, &documents[i].Spec)
				if err != nil {
					return fmt.Errorf("%s:%d: job %s: %w", args[0], documents[i].Line, documents[i].Spec.Name, err)
				}
				if answer.GetVersion() == 0 || len(answer.GetChanges()) > 0 {
					changes, brought[documents[i].Spec.Name] = true, true
				}
				if err := r.ShowNext(answer, func() string { return planText(answer) }); err != nil {
					return err
				}
				warn(r, documents[i].Spec.Name, answer.GetWarnings())
			}
			if changes {
				return exit.Silent(exit.Failed)
			}
			return nil
		},
	}
}

// firstOf returns the first of the jobs that is among some, "" if none is.
func firstOf(jobs []terms.JobName, some map[terms.JobName]bool) terms.JobName {
	for _, job := range jobs {
		if some[job] {
			return job
		}
	}
	return ""
}

// stepsShownMax bounds the steps that are shown to people.
const stepsShownMax = 60

// planText tells a plan to people.
func planText(answer *starlingv1.PlanJobResponse) string {
	b := &strings.Builder{}
	switch {
	case answer.GetVersion() == 0:
		fmt.Fprintf(b, "%s: a new job\n", answer.GetJob())
	case len(answer.GetChanges()) == 0:
		fmt.Fprintf(b, "%s: nothing would change, it keeps version %d\n", answer.GetJob(), answer.GetVersion())
		for _, t := range answer.GetTasks() {
			if n := t.GetOutdated(); n > 0 {
				fmt.Fprintf(b, "%s of %s %s of an older version: %s\n", console.Counted(n, "instance"), t.GetTask(), are(n),
					halfwayText(answer.GetJob(), answer.GetUpdate()))
			}
		}
		return b.String()
	default:
		fmt.Fprintf(b, "%s: version %d to %d\n%s", answer.GetJob(), answer.GetVersion(), answer.GetVersion()+1,
			changesText(answer.GetChanges()))
	}
	for _, t := range answer.GetTasks() {
		fmt.Fprintf(b, "task %s: %s\n", t.GetTask(), taskPlanText(t))
	}
	planSteps(b, answer)
	for _, f := range answer.GetFindings() {
		fmt.Fprintf(b, "in the end, %s of %s: %s\n", console.Counted(f.GetInstances(), "instance"), f.GetTask(),
			f.GetReason())
	}
	if u := answer.GetUpdate(); u.GetFinal() && u.GetState() != succeeded {
		fmt.Fprintf(b, "although all else goes well, the %s\n", updateText(u))
	}
	switch {
	case !answer.GetComplete():
		fmt.Fprintln(b, "and so on: the end is further away than plans are made")
	case answer.GetOthers() == 0:
		fmt.Fprintln(b, "nothing else would move")
	default:
		fmt.Fprintf(b, "%s of other jobs\n", console.Counted(answer.GetOthers(), "step"))
	}
	return b.String()
}

func are(n uint32) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// halfwayText says why instances are of an older version, and what to do.
func halfwayText(job string, u *starlingv1.Update) string {
	text := "the " + updateText(u)
	switch {
	case u.GetState() == paused:
		return fmt.Sprintf("%s; \"starling job update resume %s\" goes on", text, job)
	case u.GetFinal() && u.GetState() != succeeded:
		return fmt.Sprintf("%s; \"starling job restart %s\" replaces all instances by ones of version %d", text, job,
			u.GetTo())
	}
	return text
}

func taskPlanText(t *starlingv1.TaskPlan) string {
	var parts []string
	for _, one := range []struct {
		count uint32
		word  string
	}{
		{t.GetPlaced(), "placed"}, {t.GetReplaced(), "replaced"}, {t.GetUpdatedInPlace(), "updated in place"},
		{t.GetStopped(), "stopped"},
		{t.GetUnchanged(), "unchanged"}, {t.GetWaiting(), "waiting"}, {t.GetOutdated(), "still of an older version"},
	} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.word))
		}
	}
	if len(parts) == 0 {
		return "no instances"
	}
	return strings.Join(parts, ", ")
}

// planSteps lists the waves with their steps.
func planSteps(b *strings.Builder, answer *starlingv1.PlanJobResponse) {
	left := stepsShownMax
	for i, wave := range answer.GetWaves() {
		when := "at once"
		if after := time.Duration(wave.GetAfterMillis()) * time.Millisecond; after > 0 {
			when = "after " + after.String()
		}
		if wave.GetNeeds() != "" {
			when += ", and starling job update " + wave.GetNeeds()
		}
		fmt.Fprintf(b, "wave %d, %s\n", i+1, when)
		for _, step := range wave.GetSteps() {
			if left--; left < 0 {
				fmt.Fprintln(b, "  and more: -o json shows up to 1000 steps")
				return
			}
			fmt.Fprintf(b, "  %s\n", stepText(step, answer.GetJob()))
		}
	}
	if answer.GetCut() {
		fmt.Fprintln(b, "and more steps than are listed")
	}
}

// stepText says what happens to one instance: "server[2] stops on a, starts on b".
func stepText(step *starlingv1.Step, job string) string {
	name := fmt.Sprintf("%s[%d]", step.GetTask(), step.GetNumber())
	if step.GetJob() != job {
		name = step.GetJob() + "." + name
	}
	switch {
	case step.GetStops() == "":
		return name + " starts on " + step.GetStarts()
	case step.GetStarts() == "":
		return name + " stops on " + step.GetStops()
	case step.GetStarts() == step.GetStops():
		return name + " is replaced on " + step.GetStops()
	}
	return name + " moves from " + step.GetStops() + " to " + step.GetStarts()
}
