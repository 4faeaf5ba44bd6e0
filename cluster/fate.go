package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/lifecycle"
)

// SetFate replaces what policies made of a job.
func (s *State) SetFate(id terms.JobID, f facts.Fate) { s.changeJob(id, func(j *Job) { j.Fate = f }) }

// SetRestarts notes how often policies restarted a task in the newest version of its job.
func (s *State) SetRestarts(id terms.JobID, task int, restarts uint32) {
	s.changeTask(id, task, func(t *Task) { t.Restarts = restarts })
}

// SetRestarting lets nothing of a task begin before all that lives of it has ended, or lets it begin again.
func (s *State) SetRestarting(id terms.JobID, task int, restarting bool) {
	s.changeTask(id, task, func(t *Task) { t.Restarting = restarting })
	s.SetBlocked(facts.KeyOf(id, task), false)
	s.SetBlocked(facts.KeyOf(id, task).Special(), false)
}

// Policy returns the first policy of the newest version that is about what happened to a task or to an instance of it, and
// whether it is one of the job; code is the exit code of an instance that failed.
func (j *Job) Policy(task int, e lifecycle.Event, code int32) (p lifecycle.Policy, ofJob, ok bool) {
	spec := j.TaskSpecOf(task, j.Version)
	if spec == nil {
		return p, false, false
	}
	if p, ok = lifecycle.First(spec.Policies, e, code); ok {
		return p, false, true
	}
	p, ok = lifecycle.First(j.Spec.Policies, e, code)
	return p, true, ok
}

// SetCompletion notes what policies make of it that a task is complete.
func (s *State) SetCompletion(id terms.JobID, task int, c facts.Completion) {
	r := facts.RefOfTask(id, task)
	s.changeTask(id, task, func(t *Task) {
		s.deadlines.Delete(due{t.Completion.Due, r})
		if c.Due != 0 {
			s.deadlines.Set(due{c.Due, r})
		}
		t.Completion = c
	})
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

// Enough tells whether as many instances have succeeded as must for the job to have succeeded.
func (j *Job) Enough() bool {
	succeeded := uint32(0)
	for _, t := range j.Tasks {
		succeeded += t.Counts[facts.Succeeded]
	}
	return j.Spec.MinSuccess > 0 && succeeded >= j.Spec.MinSuccess
}

// forgetAt returns when a finished job is forgotten, 0 for when there is no room for it any more.
func (j *Job) forgetAt() terms.Time {
	if j.Spec.KeepMillis == 0 {
		return 0
	}
	return j.FinishedAt + terms.Time(j.Spec.KeepMillis)
}
