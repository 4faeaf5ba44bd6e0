package replica

import (
	"starling/cluster"
	"starling/command"
)

// JobsMax bounds the jobs that have not finished.
const JobsMax = 1 << 18

// once answers a repeated request as it was answered first, and remembers the answer to a new one.
func (f *fold) once(id string, act func() Result) Result {
	if r := f.member(); r.refused() {
		return r
	}
	if id == "" {
		return act()
	}
	if known, ok := f.s.RequestOf(id); ok {
		return Result{Refusal: known.Refusal, Job: known.Job}
	}
	result := act()
	f.s.Remember(id, cluster.Request{Index: f.s.Index, Refusal: result.Refusal, Job: result.Job})
	return result
}

// submitJob keeps a new job, or a new version of one that has not finished.
func (f *fold) submitJob(c *command.SubmitJob) Result {
	spec := c.Spec
	return f.once(c.RequestID, func() Result {
		if problems := spec.Problems(); len(problems) > 0 {
			return refused(cluster.Invalid, "%s: %s", problems[0].Path, problems[0].Reason)
		}
		result := Result{Job: spec.Name}
		old := f.s.JobOf(spec.Name)
		switch {
		case old == nil && f.s.Jobs() >= JobsMax+cluster.FinishedJobsMax:
			return refused(cluster.Exhausted, "there are %d jobs already: stop some", f.s.Jobs())
		case old == nil || old.Finished != 0:
			if old != nil {
				f.s.ForgetJob(old.ID)
			}
			f.finish(f.s.AddJob(&spec).ID)
		case old.Stop:
			return refused(cluster.Conflict, "job %s is stopping: wait until it has ended", spec.Name)
		case old.Spec.Type != spec.Type:
			return refused(cluster.Conflict, "job %s has type %s, which cannot change: stop it first", spec.Name, old.Spec.Type)
		case !old.Spec.Equal(&spec):
			f.update(old.ID, &spec)
		}
		return result
	})
}

// update makes spec the newest version, tells what differs from it or is not wanted any more to stop, and gives what
// had failed another try.
func (f *fold) update(id cluster.JobID, spec *cluster.JobSpec) {
	f.s.SetSpec(id, spec)
	for i := range f.s.Job(id).Tasks {
		for index := range f.s.Job(id).Tasks[i].Slots.Len() {
			r := cluster.SlotRef{Job: id, Task: uint16(i), Index: uint32(index)}
			j := f.s.Job(id)
			slot, ok := f.s.SlotAt(r)
			switch {
			case !ok:
			case slot.Phase == cluster.Failed && uint32(index) < j.Tasks[i].Desired:
				slot.Phase, slot.Failures, slot.Since = cluster.Waiting, 0, f.s.Time
				f.s.SetSlot(r, slot)
			case !slot.Phase.Holds() || slot.Phase == cluster.Stopping:
			case uint32(index) >= j.Tasks[i].Desired || !j.TaskSpecOf(i, slot.Version).SameProgram(j.TaskSpecOf(i, j.Version)):
				f.effect(Stopping, r, "the job has a new version")
				f.s.StopSlot(r)
			}
		}
	}
	f.finish(id)
}

// killJob ends a job for good.
func (f *fold) killJob(c *command.KillJob) Result {
	return f.once(c.RequestID, func() Result {
		j := f.s.JobOf(c.Job)
		switch {
		case j == nil:
			return refused(cluster.NotFound, "there is no job %s", c.Job)
		case j.Finished != 0:
			return refused(cluster.Conflict, "job %s has ended already: %s", c.Job, j.Status())
		case !j.Stop:
			f.stop(j)
		}
		return Result{Job: c.Job}
	})
}

func (f *fold) stop(j *cluster.Job) {
	var running []cluster.SlotRef
	if f.explain {
		for i, t := range j.Tasks {
			for index := range t.Fresh {
				if t.Slots.At(int(index)).Phase.Holds() {
					running = append(running, cluster.SlotRef{Job: j.ID, Task: uint16(i), Index: index})
				}
			}
		}
	}
	f.s.StopJob(j.ID)
	for _, r := range running {
		f.effect(Stopping, r, "the job was stopped")
	}
	if stopped := f.s.Job(j.ID); stopped != nil && stopped.Finished != 0 && f.explain {
		f.outcome.Effects = append(f.outcome.Effects, Effect{Kind: JobFinished, Slot: cluster.SlotName{Job: j.Name()}, Reason: stopped.Status().String()})
	}
}
