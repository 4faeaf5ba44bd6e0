// Package difference tells how two values differ: as they were at two moments, or as they would be with and without
// what is imagined.
package difference

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// Slots returns how many slots a task has, 0 if there is no task.
func Slots(t *workload.Task) int {
	if t == nil {
		return 0
	}
	return t.Slots.Len()
}

// RowOf returns a slot, the zero one if there is none.
func RowOf(t *workload.Task, index int) facts.Slot {
	if index >= Slots(t) {
		return facts.Slot{}
	}
	return t.Slots.At(index)
}

// runs tells whether a slot has an allocation that runs, or is about to.
func runs(s facts.Slot) bool { return s.Phase.Stays() && s.Phase != facts.Unknown }

// jobNames returns the names of the jobs of two values, in their order.
func jobNames(a, b *cluster.State) []terms.JobName {
	var names []terms.JobName
	for _, s := range []*cluster.State{a, b} {
		s.EachJob(func(j *workload.Job) bool {
			names = append(names, j.Name())
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// taskNames returns the names of the tasks of two jobs, either of which may be nil.
func taskNames(a, b *workload.Job) []terms.TaskName {
	var names []terms.TaskName
	for _, j := range []*workload.Job{a, b} {
		for number := 0; j != nil && number < len(j.Tasks); number++ {
			if !slices.Contains(names, j.Tasks[number].Name) {
				names = append(names, j.Tasks[number].Name)
			}
		}
	}
	return names
}
