package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// abandon wants nothing any more of tasks that come after what has failed.
func (f *fold) abandon(j *workload.Job) {
	for _, task := range j.Unreachable() {
		if t := f.s.Job(j.ID).Tasks[task]; t.Desired > 0 && t.Live() == 0 && !j.Stop {
			f.s.SetDesired(j.ID, task, 0)
			f.touch(j.ID)
		}
	}
}

// loseOutputs lets instances of a job run again that have succeeded, where their output went with their node and is
// needed still. Then what they read is needed again, and may have gone before.
func (f *fold) loseOutputs(id terms.JobID) {
	if j := f.s.Job(id); j.Stop || j.Finished != 0 {
		return
	}
	for {
		again := false
		for _, task := range f.s.Job(id).Needed() {
			again = f.loseOutputsOf(id, task) || again
		}
		if !again {
			return
		}
	}
}

func (f *fold) loseOutputsOf(id terms.JobID, task int) bool {
	var lost []facts.SlotRef
	f.s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
		f.s.Visit(1)
		if r.Seat == facts.MainSeat && slot.Phase == facts.Succeeded && f.s.Node(slot.Node).Peer == "" {
			lost = append(lost, r)
		}
		return true
	})
	for _, r := range lost {
		slot, _ := f.s.SlotAt(r)
		f.effect(report.Lost, r, "its output went with its node")
		slot.Ended = facts.NodeLost
		f.wait(r, slot, facts.AnyNode)
	}
	if len(lost) > 0 {
		f.touch(id)
	}
	return len(lost) > 0
}

// sealTask lets no more instances of a task begin: who asks has seen the end of its input. The first who asks is
// granted it, and may ask again. What has begun goes on to its end, also after the end of who asked.
func (f *fold) sealTask(c *command.SealTask) report.Result {
	return f.onJob(c.RequestID, c.Slot.Job, 0, func(j *workload.Job) report.Result {
		r, known := f.s.RefOf(c.Slot)
		id := terms.AllocationID{Slot: c.Slot, Order: c.Order}
		if !known || r.Job != j.ID {
			return refused(facts.NotFound, "%s does not run: it is none of the slot's present allocations", id)
		}
		t := j.Tasks[r.Task]
		slot, _ := f.s.SlotAt(r)
		switch {
		case j.Spec.Type != terms.Batch:
			return refused(facts.Conflict, "job %s is not a batch job: only tasks of those come to an end", c.Slot.Job)
		case t.Seal.Index == r.Index && t.Seal.Order == c.Order && t.Seal != facts.Seal{}:
			return report.Result{Job: c.Slot.Job}
		case slot.Order != c.Order || !slot.Phase.Holds():
			return refused(facts.NotFound, "%s does not run: it is none of the slot's present allocations", id)
		case t.Seal != facts.Seal{}:
			by := terms.AllocationID{Slot: terms.SlotName{Job: c.Slot.Job, Task: c.Slot.Task, Index: t.Seal.Index},
				Order: t.Seal.Order}
			return refused(facts.Conflict, "task %s is sealed already: %s was first, with entry %d", c.Slot.Task, by,
				t.Seal.Entry)
		}
		f.s.SetSeal(j.ID, int(r.Task),
			facts.Seal{Index: r.Index, Order: c.Order, Entry: f.s.Index, Count: min(t.Fresh, t.Desired)})
		f.s.SetDesired(j.ID, int(r.Task), min(t.Fresh, t.Desired))
		f.touch(j.ID)
		return report.Result{Job: c.Slot.Job}
	})
}

// outputLost lets an instance run again whose node has not got its output any more, if that is needed.
func (f *fold) outputLost(r facts.SlotRef, slot facts.Slot) {
	if slot.Node != f.writer.Index || !reaction.NeedsOutput(f.s, r, &slot) {
		return
	}
	f.effect(report.Lost, r, "its output is not on its node any more")
	slot.Ended = facts.OutputLost
	f.wait(r, slot, facts.AnyNode)
	f.touch(r.Job)
	f.loseOutputs(r.Job)
}

// followProblem refuses a job that comes after others which will not succeed.
func (f *fold) followProblem(spec *terms.Job) report.Result {
	for _, name := range spec.After {
		switch j := f.s.JobOf(name); {
		case j == nil:
			return refused(facts.NotFound, "there is no job %s, which job %s comes after: submit it first", name, spec.Name)
		case j.Spec.Type != terms.Batch:
			return refused(facts.Conflict, "job %s, which job %s comes after, is %s: only batch jobs come to an end", name,
				spec.Name, j.Spec.Type)
		case j.Finished != 0 && j.Status() != workload.StatusSucceeded:
			return refused(facts.Conflict, "job %s, which job %s comes after, has not succeeded: %s", name, spec.Name,
				j.Status())
		}
	}
	return report.Result{}
}

// unfinished returns the jobs that a new one has to wait for, ordered by name.
func (f *fold) unfinished(spec *terms.Job) (names []terms.JobName) {
	for _, name := range spec.After {
		if f.s.JobOf(name).Finished == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// jobEnd is how a job has ended.
type jobEnd struct {
	job       terms.JobName
	succeeded bool
}

// followJobs lets the jobs go on that waited for one that has ended with this entry and succeeded, and stops those that
// waited for one that did not. Who is stopped has ended, too.
func (f *fold) followJobs() {
	for i := 0; i < len(f.over); i++ {
		for _, id := range f.s.Followers(f.over[i].job) {
			if f.over[i].succeeded {
				f.release(id, f.over[i].job)
			} else {
				f.bar(id, f.over[i].job)
			}
		}
	}
}

// bar stops a job because one that it comes after did not succeed.
func (f *fold) bar(id terms.JobID, before terms.JobName) {
	state := f.s.Job(id).PolicyState
	state.Last = facts.PolicyAction{Entry: f.s.Index, At: f.s.Time, Before: before}
	f.s.SetPolicyState(id, state)
	f.stopJob(f.s.Job(id))
}

// release lets a job wait for one less.
func (f *fold) release(id terms.JobID, succeeded terms.JobName) {
	awaits := slices.DeleteFunc(slices.Clone(f.s.Job(id).Awaits),
		func(name terms.JobName) bool { return name == succeeded })
	f.s.SetAwaits(id, awaits)
	if j := f.s.Job(id); j.Update.State.Rolls() {
		u := j.Update
		u.ProgressAt = f.s.Time
		f.setUpdate(j, u)
	}
}
