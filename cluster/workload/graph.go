package workload

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// graph is the order of the tasks of a job, by their numbers in the value.
type graph struct {
	// after are the tasks that each comes after; order has each behind those.
	after [][]int
	order []int
}

// SetGraph notes the order of the tasks in the newest version, and tells whether there is one.
func (j *Job) SetGraph() bool {
	if j.graph = nil; !slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return len(t.After) > 0 }) {
		return false
	}
	j.graph = &graph{after: make([][]int, len(j.Tasks))}
	order, _ := j.Spec.Order()
	for _, number := range order {
		spec := &j.Spec.Tasks[number]
		task := j.TaskIndex(spec.Name)
		j.graph.order = append(j.graph.order, task)
		for _, name := range spec.After {
			j.graph.after[task] = append(j.graph.after[task], j.TaskIndex(name))
		}
	}
	return true
}

// Ordered tells whether its tasks have an order.
func (j *Job) Ordered() bool { return j.graph != nil }

// After returns the tasks that a task comes after.
func (j *Job) After(task int) []int {
	if j.graph == nil {
		return nil
	}
	return j.graph.after[task]
}

// Order returns the tasks of the newest version, each behind those that it comes after.
func (j *Job) Order() (order []int) {
	if j.graph != nil {
		return j.graph.order
	}
	for i := range j.Spec.Tasks {
		order = append(order, j.TaskIndex(j.Spec.Tasks[i].Name))
	}
	return order
}

// Behind returns a task and all that come after it, directly or not.
func (j *Job) Behind(task int) []int {
	all := []int{task}
	if j.graph == nil {
		return all
	}
	for _, other := range j.graph.order {
		if slices.ContainsFunc(j.graph.after[other], func(before int) bool { return slices.Contains(all, before) }) {
			all = append(all, other)
		}
	}
	return all
}

// Wants returns how many instances a task of the newest version is to have: if it is sealed, no more than had begun
// then.
func (j *Job) Wants(task int) uint32 {
	t, spec := j.Tasks[task], j.TaskSpecOf(task, j.Version)
	switch {
	case spec == nil:
		return 0
	case t.Seal != facts.Seal{}:
		return min(spec.Instances, t.Seal.Count)
	}
	return spec.Instances
}

// full tells whether there are as many slots of a task as the newest version wants.
func (j *Job) full(task int) bool {
	return j.TaskSpecOf(task, j.Version) != nil && j.Tasks[task].Desired == j.Wants(task)
}

// Complete tells whether all instances of a task have succeeded.
func (j *Job) Complete(task int) bool {
	t := j.Tasks[task]
	return j.full(task) && uint32(t.Slots.Len()) == t.Desired && t.Counts[facts.Succeeded] == t.Desired
}

// Held tells whether a task waits for others to be complete.
func (j *Job) Held(task int) bool {
	return slices.ContainsFunc(j.After(task), func(before int) bool { return !j.Complete(before) })
}

// Needed returns the tasks whose output others wait for or use.
func (j *Job) Needed() (needed []int) {
	if j.graph == nil {
		return nil
	}
	unreachable := j.Unreachable()
	for _, task := range j.graph.order {
		if slices.ContainsFunc(j.graph.order, func(other int) bool {
			return slices.Contains(j.graph.after[other], task) && !slices.Contains(unreachable, other) &&
				!j.Complete(other) &&
				!j.ended(other)
		}) {
			needed = append(needed, task)
		}
	}
	return needed
}

// ended tells whether a task has come to an end without being complete.
func (j *Job) ended(task int) bool {
	t := j.Tasks[task]
	return j.full(task) && t.Pending() == 0 && t.Live() == 0 && !j.Complete(task)
}

// Unreachable returns the tasks of which nothing will ever run, in the order of the tasks: what they come after has
// ended without being complete.
func (j *Job) Unreachable() (unreachable []int) {
	if j.graph == nil {
		return nil
	}
	for _, task := range j.graph.order {
		if slices.ContainsFunc(j.graph.after[task],
			func(before int) bool { return j.ended(before) || slices.Contains(unreachable, before) }) {
			unreachable = append(unreachable, task)
		}
	}
	return unreachable
}

// Idle tells whether nothing of a task asks for room for now, whatever it lacks.
func (j *Job) Idle(task int) bool { return j.Paused(task) || j.Held(task) }

// Paused tells whether nothing of a task is to run for now, not even what does.
func (j *Job) Paused(task int) bool {
	return j.Suspended || len(j.Awaits) > 0 || j.Tasks[task].Restarting
}
