package replica

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/limits"
	"starling/replica/report"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/validate"
)

// once answers a repeated request as it was answered first, and remembers the answer to a new one.
func (f *fold) once(id string, act func() report.Result) report.Result {
	if r := f.member(); r.Refused() {
		return r
	}
	if id == "" {
		return act()
	}
	key := command.RequestKey(f.s.Rules, f.asked, id)
	if known, ok := f.s.RequestOf(key); ok {
		return report.Result{Refusal: known.Refusal, Job: known.Job}
	}
	result := act()
	f.s.Remember(key, facts.Request{Index: f.s.Index, Refusal: result.Refusal, Job: result.Job})
	return result
}

// submitJob keeps a new job, or a new version of one that has not finished.
func (f *fold) submitJob(c *command.SubmitJob) report.Result {
	spec := &c.Spec
	return f.once(c.RequestID, func() report.Result {
		if problems := validate.Job(spec, f.s.Rules); len(problems) > 0 {
			return refused(facts.Invalid, "%s: %s", problems[0].Path, problems[0].Reason)
		}
		if r := limits.Leaf(f.s, spec); r.Refused() {
			return r
		}
		result := report.Result{Job: spec.Name}
		old := f.s.JobOf(spec.Name)
		present := uint32(0)
		if old != nil && old.Finished == 0 {
			present = old.Version
		}
		switch {
		case present != 0 && old.Stop:
			return refused(facts.Conflict, "job %s is stopping: wait until it has ended", spec.Name)
		case c.Against != present:
			return stale(spec.Name, c.Against, present)
		case present == 0 && f.followProblem(spec).Refused():
			return f.followProblem(spec)
		case present == 0 && limits.Job(f.s, nil, spec).Refused():
			return limits.Job(f.s, nil, spec)
		case present == 0:
			f.addJob(old, spec)
		case limits.Change(old, spec).Refused():
			return limits.Change(old, spec)
		case limits.Job(f.s, old, spec).Refused():
			return limits.Job(f.s, old, spec)
		case !old.Spec.Equal(spec):
			f.update(old, facts.JobVersion{Kind: facts.Submitted, Spec: spec})
		}
		return result
	})
}

// stale refuses a write that was made against another version than the present one.
func stale(name terms.JobName, against, present uint32) report.Result {
	switch {
	case present == 0:
		return refused(facts.Conflict, "job %s does not run: it was changed against version %d", name, against)
	case against == 0:
		return refused(facts.Conflict, "job %s exists in version %d: say that the change is made against it", name, present)
	}
	return refused(facts.Conflict, "job %s has version %d by now: it was changed against version %d", name, present,
		against)
}

// addJob brings a job; an old one of its name has finished.
func (f *fold) addJob(old *workload.Job, spec *terms.Job) {
	if old != nil {
		f.s.Expire(old.ID)
	}
	j := f.s.AddJob(spec)
	if open := f.unfinished(spec); len(open) > 0 {
		f.s.SetAwaits(j.ID, open)
		j = f.s.Job(j.ID)
	}
	if spec.Type != terms.Batch {
		f.begin(j, 0)
	}
	f.finish(j.ID)
}

// killJob ends a job for good.
func (f *fold) killJob(c *command.KillJob) report.Result {
	return f.once(c.RequestID, func() report.Result {
		j, refusal := f.open(c.Job, c.Against)
		if refusal.Refused() {
			return refusal
		}
		if !j.Stop {
			f.stopJob(j)
		}
		if c.Now {
			for _, r := range f.inPhase(j, func(p facts.Phase) bool { return p == facts.Stopping }) {
				f.hurry(r)
			}
		}
		return report.Result{Job: c.Job}
	})
}

// hurry lets what is being stopped in a seat end without delay and grace.
func (f *fold) hurry(r facts.SlotRef) {
	if slot, _ := f.s.SlotAt(r); slot.Phase == facts.Stopping {
		slot.Since = 0
		f.s.SetSlot(r, slot)
		f.effect(report.Stopping, r, "at once")
	}
}

// onJob lets a request act on a job that runs, if it has the version that the writer saw; 0 is any.
func (f *fold) onJob(id string, name terms.JobName, against uint32,
	act func(*workload.Job) report.Result) report.Result {
	return f.once(id, func() report.Result {
		j, refusal := f.open(name, against)
		switch {
		case refusal.Refused():
			return refusal
		case j.Stop:
			return report.Result{Job: name}
		}
		return act(j)
	})
}

// open returns a job that has not ended, if it has the version that the writer saw; 0 is any.
func (f *fold) open(name terms.JobName, against uint32) (*workload.Job, report.Result) {
	j := f.s.JobOf(name)
	switch {
	case j == nil:
		return nil, refused(facts.NotFound, "there is no job %s", name)
	case j.Finished != 0:
		return nil, refused(facts.Conflict, "job %s has ended already: %s", name, j.Status())
	case against != 0 && against != j.Version:
		return nil, stale(name, against, j.Version)
	}
	return j, report.Result{}
}

// inPhase returns the seats of a job whose phase is asked for.
func (f *fold) inPhase(j *workload.Job, asked func(facts.Phase) bool) (all []facts.SlotRef) {
	for task := range j.Tasks {
		f.s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			if f.s.Visit(1); asked(slot.Phase) {
				all = append(all, r)
			}
			return true
		})
	}
	return all
}

func (f *fold) stopJob(j *workload.Job) {
	var running []facts.SlotRef
	if f.explain {
		running = f.inPhase(j, facts.Phase.Holds)
	}
	f.s.StopJob(j.ID)
	for _, r := range running {
		slot, _ := f.s.SlotAt(r)
		f.effect(report.Stopping, r, slot.Cause.String())
	}
	stopped := f.s.Job(j.ID)
	if stopped == nil {
		return
	}
	if stopped.Finished != 0 {
		f.over = append(f.over, jobEnd{j.Name(), stopped.Status() == workload.StatusSucceeded})
	}
	f.endUpdate(stopped)
	if stopped.Finished != 0 && f.explain {
		f.outcome.Effects = append(f.outcome.Effects,
			report.Effect{Kind: report.JobFinished, Slot: terms.SlotName{Job: j.Name()}, Reason: explain.End(stopped)})
	}
}

// revertJob makes a copy of an earlier version the newest.
func (f *fold) revertJob(c *command.RevertJob) report.Result {
	return f.onJob(c.RequestID, c.Job, c.Against, func(j *workload.Job) report.Result {
		old := j.SpecOf(c.To)
		switch {
		case c.To == 0 || old == nil:
			return refused(facts.NotFound, "version %d of job %s is not kept", c.To, c.Job)
		case limits.Change(j, old).Refused():
			return limits.Change(j, old)
		case !old.Equal(j.Spec):
			f.update(j, facts.JobVersion{Kind: facts.Reverted, Of: c.To, Spec: old})
		}
		return report.Result{Job: c.Job}
	})
}

// restartJob replaces instances by ones of the same version, as an update.
func (f *fold) restartJob(c *command.RestartJob) report.Result {
	return f.onJob(c.RequestID, c.Job, c.Against, func(j *workload.Job) report.Result {
		if c.Task != "" && !slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool { return t.Name == c.Task }) {
			return refused(facts.NotFound, "job %s has no task %s", c.Job, c.Task)
		}
		f.update(j, facts.JobVersion{Kind: facts.Restarted, Of: j.Version, Spec: j.Spec, Task: c.Task})
		return report.Result{Job: c.Job}
	})
}

// suspendJob ends all instances of a job, which wait until it is resumed. An update goes on as far as it may meanwhile,
// and no deadline runs.
func (f *fold) suspendJob(c *command.SuspendJob) report.Result {
	return f.onJob(c.RequestID, c.Job, c.Against, func(j *workload.Job) report.Result {
		switch {
		case j.Spec.Type == terms.Daemon:
			return refused(facts.Conflict, "job %s is a daemon job, which belongs to its machines: stop it instead", c.Job)
		case j.Suspended != c.Resume:
			return report.Result{Job: c.Job}
		}
		f.suspend(j.ID, !c.Resume)
		return report.Result{Job: c.Job}
	})
}

// suspend ends all instances of a job, or lets it go on.
func (f *fold) suspend(id terms.JobID, suspended bool) {
	f.s.SetSuspended(id, suspended)
	if u := f.s.Job(id).Update; u.State.Rolls() {
		u.ProgressAt = f.s.Time
		f.setUpdate(f.s.Job(id), u)
	}
	f.touch(id)
	if suspended {
		f.endAll(id)
		return
	}
	if state := f.s.Job(id).PolicyState; state.Last.Action == lifecycle.Abort {
		state.Last = facts.PolicyAction{}
		f.s.SetPolicyState(id, state)
	}
}

// endAll tells every instance of a suspended job to end. What a policy was to decide is not due any more.
func (f *fold) endAll(id terms.JobID) {
	for task := range f.s.Job(id).Tasks {
		var all []facts.SlotRef
		f.s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
			f.s.Visit(1)
			if slot.Phase.Holds() && slot.Phase != facts.Stopping || slot.ByPolicy() {
				all = append(all, r)
			}
			return true
		})
		slices.SortStableFunc(all, facts.BesideFirst)
		for _, r := range all {
			if slot, _ := f.s.SlotAt(r); slot.ByPolicy() {
				f.anew(r, slot)
				continue
			}
			f.stop(r, facts.BySuspension)
		}
	}
}

// endAllocation ends one allocation; another takes its place.
func (f *fold) endAllocation(c *command.EndAllocation) report.Result {
	return f.once(c.RequestID, func() report.Result {
		j, refusal := f.open(c.Slot.Job, 0)
		switch {
		case refusal.Refused():
			return refusal
		case j.Stop && !c.Now:
			return report.Result{Job: c.Slot.Job}
		}
		r, _ := f.s.RefOf(c.Slot)
		seat, slot, ok := f.s.SeatOf(r, c.Order)
		id := terms.AllocationID{Slot: c.Slot, Order: c.Order}
		switch {
		case !ok || r.Job == 0 || slot.Phase.Final():
			return refused(facts.NotFound, "%s does not run: it is none of the slot's present allocations", id)
		case slot.Phase == facts.Stopping && c.Now && !c.WithoutVolumes:
			f.hurry(seat)
			return report.Result{Job: c.Slot.Job}
		case slot.Phase == facts.Stopping || slot.Phase == facts.Unknown:
			return refused(facts.Conflict, "%s is %s already", id, slot.Phase)
		}
		return f.endOne(j, seat, c)
	})
}

// endOne ends an allocation that nobody has told to stop.
func (f *fold) endOne(j *workload.Job, seat facts.SlotRef, c *command.EndAllocation) report.Result {
	slot, _ := f.s.SlotAt(seat)
	id := terms.AllocationID{Slot: c.Slot, Order: c.Order}
	spec := j.TaskSpecOf(int(seat.Task), slot.Version)
	if slot.Phase == facts.Waiting && (!c.WithoutVolumes || spec == nil) {
		return refused(facts.NotFound, "%s has ended, and its slot waits: there is nothing to stop", id)
	}
	if c.WithoutVolumes && (!j.Tied(int(seat.Task), spec, f.s.Rules) || j.Spec.Type == terms.Daemon) {
		return refused(facts.Invalid, "%s has no volumes that tie it to its machine", id)
	}
	f.touch(j.ID)
	cause := facts.ByRestart
	switch {
	case c.WithoutVolumes:
		cause = facts.ByRelease
	case c.Elsewhere:
		cause = facts.ByMove
	}
	f.stop(seat, cause)
	if c.Now {
		f.hurry(seat)
	}
	return report.Result{Job: c.Slot.Job}
}
