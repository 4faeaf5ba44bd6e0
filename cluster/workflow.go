package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// A task may come after others: nothing of it runs before all instances of those have succeeded. If one of them cannot
// succeed any more, nothing of it will ever run, and nothing is wanted of it.

// setGraph notes the order of the tasks in the newest version.
func (s *State) setGraph(j *workload.Job) {
	if j.SetGraph() {
		s.workflows.Insert(j.ID)
		return
	}
	s.workflows.Delete(j.ID)
	for task := range j.Tasks {
		s.editTask(j, task).WasComplete = false
	}
}

// SetSeal seals a task, or with the zero Seal takes that back.
func (s *State) SetSeal(id terms.JobID, task int, seal facts.Seal) {
	s.changeTask(id, task, func(t *workload.Task) { t.Seal = seal })
}

// Workflows returns the jobs whose tasks have an order and that have not finished.
func (s *State) Workflows() []terms.JobID { return s.workflows.Keys() }

// follow lets the tasks that come after one into the queue when it is complete, or out of it when it is not any more.
func (s *State) follow(j *workload.Job, task int) {
	if !j.Ordered() || j.Complete(task) == j.Tasks[task].WasComplete {
		return
	}
	t := s.editTask(j, task)
	t.WasComplete = !t.WasComplete
	u := j.Unit(j.GangState())
	for other := range j.Tasks {
		if slices.Contains(j.After(other), task) {
			s.queueTask(j, other, &u)
		}
	}
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
	s.changeJob(id, func(j *workload.Job) { j.Awaits = names })
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
