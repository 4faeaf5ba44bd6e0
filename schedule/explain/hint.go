package explain

import (
	"fmt"
	"slices"
	"strings"

	"starling/terms"
)

// Trial is what a user could do, as it is tried on a copy of the value before it is said that it would help.
type Trial struct {
	// Pools changes the tree of pools, Job makes a new version of the job; either may be nil. Anew tells that the job must
	// end first and be run again.
	Pools func(tree []terms.Pool)
	Job   func(j *terms.Job, t *terms.Task)
	Anew  bool
	// Nodes join with these offers, Ends are jobs that end.
	Nodes []terms.Offer
	Ends  []terms.JobName
}

// Try returns how many of those instances of a task that wait, and would not come to run by themselves, would run if
// that was done in this order and all went well.
type Try func(task terms.TaskName, what []*Trial) uint32

// hint is what may help. Instead is tried if it does not.
type hint struct {
	text    string
	trial   Trial
	instead *hint
}

// hints are what may help, a group for each thing that is in the way.
type hints [][]hint

// triesMax bounds what is tried for one finding: each takes as long as some entries do.
const triesMax = 24

// verified returns what would help a task: what does when it is tried. If nothing does by itself, it is tried whether
// the first of all groups help together with those of more: then there is more than one thing in the way.
func (e *explainer) verified(all, more hints) (lines []string) {
	if e.Try == nil {
		return nil
	}
	v, nodes := &verifying{e: e}, false
	for _, group := range all {
		for i := range group {
			h := &group[i]
			if nodes && h.trial.Nodes != nil {
				continue // fewer nodes help
			}
			if line := v.alone(h); line != "" && !slices.Contains(lines, line) {
				lines, nodes = append(lines, line), nodes || h.trial.Nodes != nil
			}
		}
	}
	if len(lines) == 0 {
		lines = v.together(slices.Concat(all, more))
	}
	return lines
}

// verifying counts what was tried for a finding.
type verifying struct {
	e     *explainer
	tries int
}

// try returns how many instances would run with trials.
func (v *verifying) try(what []*Trial) uint32 {
	if v.tries == triesMax {
		return 0
	}
	v.tries++
	return v.e.Try(v.e.task.Name, what)
}

// alone returns the first line of a hint and those instead of it that helps, "" if none does.
func (v *verifying) alone(h *hint) string {
	for ; h != nil; h = h.instead {
		if run := v.try([]*Trial{&h.trial}); run > 0 {
			return "would help: " + h.text + v.e.partly(run)
		}
	}
	return ""
}

// togetherMax bounds what is said to help only together: nobody does more than that at once.
const togetherMax = 3

// together tries all groups at once, of each the first hint or the last, with the most that it may take, and leaves out
// what is not needed. No other job is to end for what that alone does not bring.
func (v *verifying) together(all hints) []string {
	var chosen, others []*hint
	for _, group := range all {
		group = slices.DeleteFunc(slices.Clone(group), func(h hint) bool { return h.trial.Ends != nil })
		if len(group) > 0 {
			chosen, others = append(chosen, group[0].most()), append(others, group[len(group)-1].most())
		}
	}
	if len(chosen) < 2 {
		return nil
	}
	run := v.try(trialsOf(chosen))
	if run == 0 {
		chosen, run = others, v.try(trialsOf(others))
	}
	if run == 0 {
		return nil
	}
	for i := 0; i < len(chosen) && len(chosen) > 1; {
		fewer := slices.Delete(slices.Clone(chosen), i, i+1)
		if n := v.try(trialsOf(fewer)); n > 0 {
			chosen, run = fewer, n
		} else {
			i++
		}
	}
	if len(chosen) > togetherMax {
		return nil
	}
	var texts []string
	for _, h := range chosen {
		texts = append(texts, h.text)
	}
	return []string{"would help: " + strings.Join(texts, ", together with ") + v.e.partly(run)}
}

// most returns what is tried last of a hint and those instead of it that bring no more nodes.
func (h *hint) most() *hint {
	for h.instead != nil && len(h.instead.trial.Nodes) <= len(h.trial.Nodes) {
		h = h.instead
	}
	return h
}

// last returns what is tried last of a hint and those instead of it.
func (h *hint) last() *hint {
	for h.instead != nil {
		h = h.instead
	}
	return h
}

// trialsOf returns the trials of hints, in their order.
func trialsOf(all []*hint) (trials []*Trial) {
	for _, h := range all {
		trials = append(trials, &h.trial)
	}
	return trials
}

// partly says how many of those that wait would run, "" if all would.
func (e *explainer) partly(run uint32) string {
	if waiting := e.task.Pending(); run < waiting {
		return fmt.Sprintf(" (%d of %d would run)", run, waiting)
	}
	return ""
}

// ofJob is a hint about the job file, ofPool one about the file of pools.
func ofJob(text string, change func(j *terms.Job, t *terms.Task)) hint {
	return hint{text: text, trial: Trial{Job: change}}
}

func ofPool(text string, change func(tree []terms.Pool)) hint {
	return hint{text: text, trial: Trial{Pools: change}}
}

// anew is a hint about something that a running job cannot change.
func anew(text string, change func(j *terms.Job, t *terms.Task)) hint {
	h := ofJob(text+", by a stop and a new start of the job", change)
	h.trial.Anew = true
	return h
}

// endOf is a hint that a job should end.
func endOf(name terms.JobName) hint {
	return hint{text: fmt.Sprintf("the end of %s", name), trial: Trial{Ends: []terms.JobName{name}}}
}

// chain makes one hint of several that say the same of different things, each tried if those before did not help.
func chain(all []hint) []hint {
	for i := len(all) - 1; i > 0; i-- {
		all[i-1].last().instead = &all[i]
	}
	return all[:min(len(all), 1)]
}
