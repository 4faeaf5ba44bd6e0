package draft

import (
	"fmt"
	"io"
	"strings"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/words"
)

// States of an update.
const (
	Forward   = "ROLLING_FORWARD"
	Paused    = "PAUSED"
	Succeeded = "SUCCEEDED"
)

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
				fmt.Fprintf(b, "%s of %s %s of an older version: %s\n", words.Counted(n, "instance"), t.GetTask(), are(n),
					halfwayText(answer.GetJob(), answer.GetUpdate()))
			}
		}
		return b.String()
	default:
		fmt.Fprintf(b, "%s: version %d to %d\n%s", answer.GetJob(), answer.GetVersion(), answer.GetVersion()+1,
			ChangesText(answer.GetChanges()))
	}
	for _, t := range answer.GetTasks() {
		fmt.Fprintf(b, "task %s: %s\n", t.GetTask(), taskPlanText(t))
	}
	planSteps(b, answer)
	for _, f := range answer.GetFindings() {
		fmt.Fprintf(b, "in the end, %s of %s: %s\n", words.Counted(f.GetInstances(), "instance"), f.GetTask(),
			f.GetReason())
	}
	if u := answer.GetUpdate(); u.GetFinal() && u.GetState() != Succeeded {
		fmt.Fprintf(b, "although all else goes well, the %s\n", UpdateText(u))
	}
	switch {
	case !answer.GetComplete():
		fmt.Fprintln(b, "and so on: the end is further away than plans are made")
	case answer.GetOthers() == 0:
		fmt.Fprintln(b, "nothing else would move")
	default:
		fmt.Fprintf(b, "%s of other jobs\n", words.Counted(answer.GetOthers(), "step"))
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
	text := "the " + UpdateText(u)
	switch {
	case u.GetState() == Paused:
		return fmt.Sprintf("%s; \"starling job update resume %s\" goes on", text, job)
	case u.GetFinal() && u.GetState() != Succeeded:
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
	if step.GetCanary() {
		name += " canary"
	}
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

// ChangesText lists changes, a line each; texts of several lines have theirs below.
func ChangesText(changes []*starlingv1.Change) string {
	if len(changes) == 0 {
		return "  nothing differs\n"
	}
	b := &strings.Builder{}
	for _, c := range changes {
		fmt.Fprintf(b, "  %s  %s:", c.GetEffect(), c.GetPath())
		switch {
		case c.GetOld() == "":
			fmt.Fprintf(b, " added, %s\n", c.GetNew())
		case c.GetNew() == "":
			fmt.Fprintf(b, " removed, was %s\n", c.GetOld())
		case strings.Contains(c.GetOld()+c.GetNew(), "\n"):
			fmt.Fprintln(b)
			changedLines(b, "-", c.GetOld())
			changedLines(b, "+", c.GetNew())
		default:
			fmt.Fprintf(b, " %s -> %s\n", c.GetOld(), c.GetNew())
		}
	}
	return b.String()
}

func changedLines(w io.Writer, sign, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(w, "    %s %s\n", sign, strings.TrimSuffix(line, "\n"))
	}
}

// UpdateText says how an update stands: "update to version 2 is rolling forward".
func UpdateText(u *starlingv1.Update) string {
	if u == nil {
		return "there was no update"
	}
	text := fmt.Sprintf("update to version %d %s", u.GetTo(), StateText(u.GetState()))
	if u.GetReason() != "" {
		text += ": " + u.GetReason()
	}
	return text
}

// StateText says the state of an update in small letters.
func StateText(state string) string { return strings.ToLower(strings.ReplaceAll(state, "_", " ")) }
