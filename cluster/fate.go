package cluster

import (
	"slices"

	"starling/terms"
	"starling/terms/lifecycle"
)

// Verdict is as what a job ends that policies have ended.
type Verdict uint8

// The verdicts.
const (
	// NoVerdict is that of a job which ends by itself, or because a user stopped it.
	NoVerdict Verdict = iota
	// Terminated ends it as a failure, Completed as a success.
	Terminated
	Completed
)

// Fate is what policies, or other jobs, made of a job. The zero Fate is none.
type Fate struct {
	Verdict Verdict
	// Restarts is how often they restarted all of it in its newest version.
	Restarts uint32
	// Last is the latest that followed.
	Last Deed
}

// Deed is what followed from a policy, from enough successes, or from the end of a job that this one came after, and why.
type Deed struct {
	// Entry is that of the journal with which it was done, 0 for nothing.
	Entry  terms.Index
	At     terms.Time
	Action lifecycle.Action
	// Event is what happened; 0 is that enough instances have succeeded.
	Event lifecycle.Event
	// OfJob tells that the policy is one of the job, and not of the task.
	OfJob bool
	// Spent tells that the restarts were used up, and the job has failed instead.
	Spent bool
	// Task and Index name the slot to which it happened, Order its allocation, and Ended and ExitCode how that ended.
	Task     uint16
	Index    uint32
	Order    terms.Index
	Ended    Ending
	ExitCode int32
	// Before is the job that did not succeed and that this one came after, which stopped it; "" if none did.
	Before terms.JobName
}

// Completion is what policies make of it that a task is complete. The zero Completion is nothing.
type Completion struct {
	// Due is when what a policy says of it follows, 0 for never.
	Due terms.Time
	// Followed tells that it has, which it does once until the task is not complete any more.
	Followed bool
}

func (f *Fate) hash() uint64 {
	d := &f.Last
	h := hashWords(tagJob, uint64(f.Verdict)<<32|uint64(f.Restarts), uint64(d.Entry), uint64(d.At), uint64(d.Action)<<8|uint64(d.Event),
		bit(d.OfJob)<<1|bit(d.Spent), uint64(d.Task)<<32|uint64(d.Index), uint64(d.Order), uint64(d.Ended)<<32|uint64(uint32(d.ExitCode)))
	if d.Before != "" {
		h = mix(h, hashText(tagJob, string(d.Before)))
	}
	return h
}

// SetFate replaces what policies made of a job.
func (s *State) SetFate(id terms.JobID, f Fate) { s.changeJob(id, func(j *Job) { j.Fate = f }) }

// SetRestarts notes how often policies restarted a task in the newest version of its job.
func (s *State) SetRestarts(id terms.JobID, task int, restarts uint32) {
	s.changeTask(id, task, func(t *Task) { t.Restarts = restarts })
}

// SetRestarting lets nothing of a task begin before all that lives of it has ended, or lets it begin again.
func (s *State) SetRestarting(id terms.JobID, task int, restarting bool) {
	s.changeTask(id, task, func(t *Task) { t.Restarting = restarting })
	s.SetBlocked(KeyOf(id, task), false)
	s.SetBlocked(KeyOf(id, task).Special(), false)
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
func (s *State) SetCompletion(id terms.JobID, task int, c Completion) {
	r := SlotRef{Job: id, Task: uint16(task), Index: taskDeadline}
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
		succeeded += t.Counts[Succeeded]
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
