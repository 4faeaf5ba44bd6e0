package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// A task may come after others: nothing of it runs before all instances of those have succeeded. If one of them cannot
// succeed any more, nothing of it will ever run, and nothing is wanted of it.

// graph is the order of the tasks of a job, by their numbers in the value.
type graph struct {
	// after are the tasks that each comes after; order has each behind those.
	after [][]int
	order []int
}

// setGraph notes the order of the tasks in the newest version, nil if there is none.
func (j *Job) setGraph(s *State) {
	if j.graph = nil; !slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return len(t.After) > 0 }) {
		s.workflows.Delete(j.ID)
		for task := range j.Tasks {
			s.editTask(j, task).complete = false
		}
		return
	}
	s.workflows.Insert(j.ID)
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
}

// After returns the tasks that a task comes after.
func (j *Job) After(task int) []int {
	if j.graph == nil {
		return nil
	}
	return j.graph.after[task]
}

// SetSeal seals a task, or with the zero Seal takes that back.
func (s *State) SetSeal(id terms.JobID, task int, seal facts.Seal) {
	s.changeTask(id, task, func(t *Task) { t.Seal = seal })
}

// Wants returns how many instances a task of the newest version is to have: if it is sealed, no more than had begun then.
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
	vain := j.Vain()
	for _, task := range j.graph.order {
		if slices.ContainsFunc(j.graph.order, func(other int) bool {
			return slices.Contains(j.graph.after[other], task) && !slices.Contains(vain, other) && !j.Complete(other) && !j.ended(other)
		}) {
			needed = append(needed, task)
		}
	}
	return needed
}

// Workflows returns the jobs whose tasks have an order and that have not finished.
func (s *State) Workflows() []terms.JobID { return s.workflows.Keys() }

// ended tells whether a task has come to an end without being complete.
func (j *Job) ended(task int) bool {
	t := j.Tasks[task]
	return j.full(task) && t.Pending() == 0 && t.Live() == 0 && !j.Complete(task)
}

// Vain returns the tasks of which nothing will ever run, in the order of the tasks: what they come after has ended without
// being complete.
func (j *Job) Vain() (vain []int) {
	if j.graph == nil {
		return nil
	}
	for _, task := range j.graph.order {
		if slices.ContainsFunc(j.graph.after[task], func(before int) bool { return j.ended(before) || slices.Contains(vain, before) }) {
			vain = append(vain, task)
		}
	}
	return vain
}

// follow lets the tasks that come after one into the queue when it is complete, or out of it when it is not any more.
func (s *State) follow(j *Job, task int) {
	if j.graph == nil || j.Complete(task) == j.Tasks[task].complete {
		return
	}
	t := s.editTask(j, task)
	t.complete = !t.complete
	u := j.unit(j.GangState())
	for other, after := range j.graph.after {
		if slices.Contains(after, task) {
			s.queueTask(j, other, &u)
		}
	}
}

// Idle tells whether nothing of a task asks for room for now, whatever it lacks.
func (j *Job) Idle(task int) bool { return j.Paused(task) || j.Held(task) }

// Paused tells whether nothing of a task is to run for now, not even what does.
func (j *Job) Paused(task int) bool {
	return j.Suspended || len(j.Awaits) > 0 || j.Tasks[task].Restarting
}

// follower is a job that comes after another, by the name of that.
type follower struct {
	name terms.JobName
	id   terms.JobID
}

func (a follower) before(b follower) bool { return a.name < b.name || a.name == b.name && a.id < b.id }

// SetAwaits notes which jobs a job waits for; without any it may run.
func (s *State) SetAwaits(id terms.JobID, names []terms.JobName) {
	for _, name := range s.Job(id).Awaits {
		s.followers.Delete(follower{name, id})
	}
	for _, name := range names {
		s.followers.Set(follower{name, id})
	}
	s.changeJob(id, func(j *Job) { j.Awaits = names })
	s.tryAnew(id)
}

// tryAnew lets what waits of a job try all nodes, as far as it asks for room now.
func (s *State) tryAnew(id terms.JobID) {
	for task := range s.Job(id).Tasks {
		s.SetBlocked(facts.KeyOf(id, task), false)
		s.SetBlocked(facts.KeyOf(id, task).Special(), false)
	}
}

// Followers returns the jobs that wait for a job, the oldest first.
func (s *State) Followers(name terms.JobName) (all []terms.JobID) {
	s.followers.Ascend(follower{name: name}, func(f follower) bool {
		if f.name == name {
			all = append(all, f.id)
		}
		return f.name == name
	})
	return all
}
