// Package chronicle tells what happened from one moment to another, from the entries between: to a job, and what was
// held for how long.
package chronicle

import (
	"context"
	"fmt"
	"slices"

	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
)

// Archive has the past.
type Archive interface {
	// At returns the value at an index, as a copy of the caller's own.
	At(ctx context.Context, index terms.Index) (*cluster.State, error)
	// Walk folds the entries behind an index up to another, and visits each with what it did and the value after it, which
	// is only to be read.
	Walk(ctx context.Context, from, to terms.Index, visit func(*cluster.State, *report.Folded) error) error
}

// Target is a job, or a task or an instance of it.
type Target struct {
	Job  terms.JobName
	Task terms.TaskName
	// Number is that of the instance, -1 for all of the task.
	Number int64
}

// String names the target as users do.
func (t *Target) String() string {
	text := string(t.Job)
	if t.Task != "" {
		text += "." + string(t.Task)
	}
	if t.Number >= 0 {
		text += fmt.Sprintf("[%d]", t.Number)
	}
	return text
}

// In tells whether a value has the target.
func (t *Target) In(s *cluster.State) bool {
	j := s.JobOf(t.Job)
	if j == nil || t.Task == "" {
		return j != nil
	}
	task := j.TaskIndex(t.Task)
	return task >= 0 && t.Number < int64(j.Tasks[task].Slots.Len())
}

// Part returns what of an entry is about a target, ok is false if nothing is. Jobs of pools that the reader may not see
// have no names in it.
func (t *Target) Part(f *report.Folded, sees func(terms.PoolPath) bool) (part report.Folded, ok bool) {
	part = *f
	part.Outcome.Effects = slices.DeleteFunc(slices.Clone(f.Outcome.Effects), func(e report.Effect) bool {
		return !t.means(&e.Slot)
	})
	for i := range part.Outcome.Effects {
		if e := &part.Outcome.Effects[i]; !sees(e.By.Pool()) {
			e.By = ""
		}
	}
	part.Outcome.Results = nil
	if f.Entry != nil {
		entry := *f.Entry
		entry.Commands = nil
		for i, result := range f.Outcome.Results {
			if result.Job == t.Job {
				entry.Commands = append(entry.Commands, f.Entry.Commands[i])
				part.Outcome.Results = append(part.Outcome.Results, result)
			}
		}
		part.Entry = &entry
	}
	return part, len(part.Outcome.Effects)+len(part.Outcome.Results) > 0
}

// means tells whether a slot is meant, or all of the job is.
func (t *Target) means(slot *terms.SlotName) bool {
	switch {
	case slot.Job != t.Job || slot.Job == "":
		return false
	case t.Task == "" || slot.Task == "":
		return true
	}
	return slot.Task == t.Task && (t.Number < 0 || int64(slot.Index) == t.Number)
}
