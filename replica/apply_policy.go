package replica

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/cluster/workload"
	"starling/reconcile"
	"starling/replica/report"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/lifecycle"
)

// Policies. What a policy is about is noted in the slot to which it happened: one that failed is rescheduling until the
// policy's delay is over, one that was evicted waits for a node until then, and nothing follows if it has one before.
// That a task is complete is noted in its row, and nothing follows if it is not any more before. What follows is done
// with the entry in which it is due, after the commands.

// heard returns the policy that is about what happened to the instance in a seat, and whether it is one of the job.
func (f *fold) heard(r facts.SlotRef, e lifecycle.Event, code int32) (p lifecycle.Policy, ofJob, ok bool) {
	j := f.s.Job(r.Job)
	if j.Stop || j.Suspended || r.Seat != facts.MainSeat || r.Index >= j.Tasks[r.Task].Desired {
		return p, false, false
	}
	return j.Policy(int(r.Task), e, code)
}

// spent tells whether an instance that failed is out of restarts on its node. Where the node lacks what it needs it has
// none, unless it belongs there.
func (f *fold) spent(r facts.SlotRef, slot *facts.Slot) bool {
	j := f.s.Job(r.Job)
	most := j.TaskSpecOf(int(r.Task), slot.Version).Restart.AttemptsMax
	return slot.Ended == facts.NotThere && j.Spec.Type != terms.Daemon ||
		most != terms.RestartsUnlimited && slot.Failures > most
}

// failedByPolicy lets a policy decide what follows a failure. It returns false if none is about it.
func (f *fold) failedByPolicy(r facts.SlotRef, slot facts.Slot, e lifecycle.Event) bool {
	p, _, ok := f.heard(r, e, slot.OwnExitCode())
	switch {
	case !ok:
		return false
	case p.Action == lifecycle.RestartInstance && !f.spent(r, &slot) && f.s.Node(slot.Node).Peer == "":
		f.wait(r, slot, facts.AnyNode) // its node has left: it starts again elsewhere
	case p.Action == lifecycle.RestartInstance && !f.spent(r, &slot):
		delay := terms.Time(p.DelayMillis)
		if delay == 0 {
			delay = terms.Time(f.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Restart.Delay(slot.Failures))
		}
		f.delay(r, slot, delay)
	case p.Action == lifecycle.RestartInstance:
		f.hold(r, slot, 0)
	case e == lifecycle.TaskFailed:
		slot.Cause = facts.ByTaskPolicy
		f.hold(r, slot, p.DelayMillis)
	default:
		f.hold(r, slot, p.DelayMillis)
	}
	return true
}

// hold keeps a slot as it is until what a policy says of it is done.
func (f *fold) hold(r facts.SlotRef, slot facts.Slot, delay uint32) {
	slot.Phase, slot.Deadline = facts.Rescheduling, f.s.Time+terms.Time(delay)
	if slot.Cause != facts.ByTaskPolicy {
		slot.Cause = facts.ByPolicy
	}
	f.s.SetSlot(r, slot)
	if delay == 0 {
		f.notePolicyDue(r)
	} else {
		f.effect(report.BackingOff, r, fmt.Sprintf("what a policy says is done in %d ms", delay))
	}
}

// notePolicyDue notes that what a policy says of a slot is due now.
func (f *fold) notePolicyDue(r facts.SlotRef) {
	f.duePolicies = append(f.duePolicies, r)
	f.touch(r.Job)
}

// evicted lets a policy decide what becomes of a slot that lost its instance through no fault of that, and waits now.
func (f *fold) evicted(r facts.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	p, _, ok := f.heard(r, lifecycle.InstanceEvicted, 0)
	if !ok || slot.Phase != facts.Waiting {
		return
	}
	if p.Action == lifecycle.RestartInstance {
		before := slot.Ended
		slot.Failures, slot.Ended = slot.Failures+1, evictedBy(before)
		if f.spent(r, &slot) {
			f.hold(r, slot, 0)
			return
		}
		slot.Ended = before
		f.s.SetSlot(r, slot)
		return
	}
	slot.Ended, slot.Deadline = evictedBy(slot.Ended), f.s.Time+terms.Time(p.DelayMillis)
	f.s.SetSlot(r, slot)
	if p.DelayMillis == 0 {
		f.notePolicyDue(r)
	}
}

// hearsEviction tells whether a policy is about the eviction of an instance.
func (f *fold) hearsEviction(r facts.SlotRef) bool {
	_, _, ok := f.heard(r, lifecycle.InstanceEvicted, 0)
	return ok
}

// evictedBy returns how an allocation ended that was evicted: what its program did when it was told to stop is not what
// matters. Nobody saw the end of one that was out of reach.
func evictedBy(seen facts.Ending) facts.Ending {
	switch seen {
	case facts.Preempted, facts.NodeLost:
		return seen
	case facts.NotEnded:
		return facts.NodeLost
	}
	return facts.OnRequest
}

// exhausted lets a policy decide what follows when an instance has failed for good.
func (f *fold) exhausted(r facts.SlotRef) {
	if slot, _ := f.s.SlotAt(r); slot.Phase == facts.Failed {
		f.failedByPolicy(r, slot, lifecycle.TaskFailed)
	}
}

// completed returns the policy that is about it that a task is complete, and the slot in whose name it is followed.
func (f *fold) completed(j *workload.Job, task int) (p lifecycle.Policy, r facts.SlotRef, ok bool) {
	t := j.Tasks[task]
	r = facts.SlotRef{Job: j.ID, Task: uint16(task), Index: max(t.Desired, 1) - 1}
	if t.Desired > 0 && t.Counts[facts.Succeeded] >= t.Desired {
		p, _, ok = f.heard(r, lifecycle.TaskCompleted, 0)
	}
	return p, r, ok && j.Complete(task)
}

// hearCompletion notes when what a policy says of it follows that a task is complete, and that nothing does if it is
// not any more; after a suspension it is heard anew. It returns true for now.
func (f *fold) hearCompletion(id terms.JobID, task int) (now bool) {
	j := f.s.Job(id)
	next := j.Tasks[task].Completion
	p, r, ok := f.completed(j, task)
	switch {
	case j.Suspended:
		next.Due = 0
	case !ok:
		next = facts.Completion{}
	case next != (facts.Completion{}):
	case p.DelayMillis == 0:
		return true
	default:
		next.Due = f.s.Time + terms.Time(p.DelayMillis)
		f.effect(report.BackingOff, r, fmt.Sprintf("what a policy says is done in %d ms", p.DelayMillis))
	}
	if next != j.Tasks[task].Completion {
		f.s.SetCompletion(id, task, next)
	}
	return false
}

// hearCompletions does so for all tasks of a job: one is also complete when it needs no more instances than have
// succeeded.
func (f *fold) hearCompletions(id terms.JobID) {
	for task := range f.s.Job(id).Tasks {
		if f.hearCompletion(id, task) {
			f.completionDue(id, task)
			f.beginAnew(id)
		}
	}
}

// unheard tells whether a task of a job is complete, and what a policy says of it has not been done.
func (f *fold) unheard(j *workload.Job) bool {
	for task, t := range j.Tasks {
		if _, _, ok := f.completed(j, task); ok && !t.Completion.Followed {
			return true
		}
	}
	return false
}

// completionDue does what a policy says of a task that has been complete for long enough.
func (f *fold) completionDue(id terms.JobID, task int) {
	f.touch(id)
	_, r, _ := f.completed(f.s.Job(id), task)
	f.s.SetCompletion(id, task, facts.Completion{})
	slot, _ := f.s.SlotAt(r)
	f.obeyPolicy(r, slot)
	f.finish(id)
}

// runDuePolicies does what policies say that is due because of this entry.
func (f *fold) runDuePolicies() {
	for _, r := range f.duePolicies {
		if j := f.s.Job(r.Job); j != nil && j.Finished == 0 {
			if slot, ok := f.s.SlotAt(r); ok {
				f.obeyPolicy(r, slot)
			}
		}
	}
	due := f.duePolicies
	f.duePolicies = nil
	for _, r := range due {
		if f.s.Job(r.Job) != nil {
			f.finish(r.Job)
		}
	}
}

// policyDue does what a policy says of a slot whose time has come. If none does any more, the slot goes on.
func (f *fold) policyDue(r facts.SlotRef, slot facts.Slot) {
	switch {
	case f.obeyPolicy(r, slot):
	case slot.Phase == facts.Waiting:
		slot.Deadline = 0
		f.s.SetSlot(r, slot)
	default:
		slot.Deadline, slot.Cause = 0, facts.NoCause
		f.settle(r, slot, func(c *reconcile.Candidate) { c.Due = true })
	}
	f.finish(r.Job)
}

// obeyPolicy does what the policy says that is about a slot as it is now. It returns false if there is none.
func (f *fold) obeyPolicy(r facts.SlotRef, slot facts.Slot) bool {
	action := facts.PolicyAction{
		Entry: f.s.Index, At: f.s.Time, Task: r.Task, Index: r.Index, Order: slot.Order, Ended: slot.Ended,
		ExitCode: slot.ExitCode,
	}
	rescheduling := slot.Phase == facts.Rescheduling
	switch {
	case rescheduling && slot.Cause == facts.ByTaskPolicy:
		action.Event = lifecycle.TaskFailed
	case rescheduling && slot.Cause == facts.ByPolicy && evictedBy(slot.Ended) != slot.Ended:
		action.Event = lifecycle.InstanceFailed
	case rescheduling && slot.Cause == facts.ByPolicy, slot.Phase == facts.Waiting && slot.Deadline != 0:
		action.Event = lifecycle.InstanceEvicted
	case slot.Phase == facts.Succeeded && f.s.Job(r.Job).Complete(int(r.Task)):
		action.Event = lifecycle.TaskCompleted
	default:
		return false
	}
	p, ofJob, ok := f.heard(r, action.Event, slot.OwnExitCode())
	if ok && action.Event == lifecycle.TaskCompleted {
		f.s.SetCompletion(r.Job, int(r.Task), facts.Completion{Followed: true})
	}
	if ok {
		action.Action, action.OfJob = p.Action, ofJob
		f.act(r, action)
	}
	return ok
}

// act does what follows from an event.
func (f *fold) act(r facts.SlotRef, action facts.PolicyAction) {
	j := f.s.Job(r.Job)
	f.touch(r.Job)
	state, spec := j.PolicyState, j.TaskSpecOf(int(r.Task), j.Version)
	switch action.Action {
	case lifecycle.RestartInstance:
		action.Spent = true
	case lifecycle.RestartTask:
		action.Spent = !mayRestart(j.Tasks[r.Task].Restarts, spec.MaxRestarts)
	case lifecycle.RestartJob:
		action.Spent = !mayRestart(state.Restarts, j.Spec.MaxRestarts)
	}
	state.Last = action
	if action.Action == lifecycle.RestartJob && !action.Spent {
		state.Restarts++
	}
	f.s.SetPolicyState(j.ID, state)
	f.effect(report.Decided, r, explain.PolicyAction(j, &action))
	switch {
	case action.Spent, action.Action == lifecycle.Terminate:
		f.end(r, facts.Terminated)
	case action.Action == lifecycle.Complete:
		f.end(r, facts.Completed)
	case action.Action == lifecycle.Abort:
		f.suspend(j.ID, true)
	case action.Action == lifecycle.RestartTask:
		f.s.SetRestarts(j.ID, int(r.Task), j.Tasks[r.Task].Restarts+1)
		f.renewAll(j.ID, j.Behind(int(r.Task)), facts.ByTaskRestart)
	default:
		all := make([]int, len(j.Tasks))
		for task := range all {
			all[task] = task
		}
		f.renewAll(j.ID, all, facts.ByJobRestart)
	}
}

func mayRestart(restarts, most uint32) bool {
	return most == terms.RestartsUnlimited || restarts < most
}

// end ends a job with an outcome. A slot that waits for it has failed.
func (f *fold) end(r facts.SlotRef, v facts.PolicyOutcome) {
	if slot, _ := f.s.SlotAt(r); slot.Phase == facts.Rescheduling {
		slot.Phase, slot.Cause, slot.Deadline, slot.Health = facts.Failed, facts.NoCause, 0, facts.Unhealthy
		f.s.SetSlot(r, slot)
	}
	state := f.s.Job(r.Job).PolicyState
	state.Outcome = v
	f.s.SetPolicyState(r.Job, state)
	f.stopJob(f.s.Job(r.Job))
}

// enough ends a job of which as many instances have succeeded as it wants. It returns false if there are fewer.
func (f *fold) enough(id terms.JobID) bool {
	j := f.s.Job(id)
	if !j.Enough() {
		return false
	}
	state := j.PolicyState
	state.Outcome = facts.Completed
	state.Last = facts.PolicyAction{Entry: f.s.Index, At: f.s.Time, Action: lifecycle.Complete}
	f.s.SetPolicyState(id, state)
	f.stopJob(f.s.Job(id))
	return true
}

// renewAll ends all that lives of some tasks and lets every slot begin anew when the last has ended, also where nothing
// was wanted any more because of a task before.
func (f *fold) renewAll(id terms.JobID, tasks []int, cause facts.Cause) {
	for _, task := range tasks {
		f.s.SetRestarting(id, task, true)
		j := f.s.Job(id)
		sealed := j.Tasks[task].Seal != facts.Seal{}
		if sealed {
			f.s.SetSeal(id, task, facts.Seal{}) // its input begins anew
		}
		if spec := j.TaskSpecOf(task, j.Version); j.Spec.Type == terms.Batch && (j.Tasks[task].Desired == 0 || sealed) &&
			spec != nil {
			f.s.SetDesired(id, task, spec.Instances)
		}
		var all []facts.SlotRef
		f.s.EachSlot(id, task, func(r facts.SlotRef, _ facts.Slot) bool {
			f.s.Visit(1)
			all = append(all, r)
			return true
		})
		slices.SortStableFunc(all, facts.BesideFirst)
		for _, r := range all {
			slot, ok := f.s.SlotAt(r)
			switch {
			case !ok:
			case slot.Phase == facts.Stopping &&
				slices.Contains([]facts.Cause{facts.ByUpdate, facts.ByScale, facts.ByRival}, slot.Cause):
			case slot.Phase.Holds():
				f.stop(r, cause)
			case r.Seat == facts.MainSeat && r.Index < f.s.Job(id).Tasks[task].Desired:
				f.anew(r, slot)
			}
		}
	}
	f.loseOutputs(id)
}

// anew lets a slot wait for a node as if nothing had been before.
func (f *fold) anew(r facts.SlotRef, slot facts.Slot) {
	slot.Failures, slot.Health = 0, facts.Starting
	f.s.SetAttempts(r, retries.Attempts{})
	f.wait(r, slot, facts.AnyNode)
}

// beginAnew lets the tasks of a job that are restarted begin when nothing of them lives any more.
func (f *fold) beginAnew(id terms.JobID) {
	j, restarting := f.s.Job(id), false
	for _, t := range j.Tasks {
		if restarting = restarting || t.Restarting; t.Restarting && t.Live() > 0 {
			return
		}
	}
	for task := range j.Tasks {
		if restarting && j.Tasks[task].Restarting {
			f.s.SetRestarting(id, task, false)
		}
	}
}
