package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// StopJob asks a job that is not finished to end: what waits is dropped, and what its node has is to stop.
func (s *State) StopJob(id terms.JobID) {
	s.changeJob(id, func(j *workload.Job) { j.Stop, j.Changed = true, s.Index })
	cause := [...]facts.Cause{facts.NoOutcome: facts.ByJob, facts.Terminated: facts.ByTermination,
		facts.Completed: facts.ByCompletion}[s.Job(id).PolicyState.Outcome]
	for task := range s.Job(id).Tasks {
		var all []facts.SlotRef
		s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
			if !slot.Phase.Final() && slot.Phase != facts.Stopping {
				all = append(all, r)
			}
			return true
		})
		for _, r := range all {
			s.StopSlot(r, cause)
		}
		s.SetDesired(id, task, min(s.Job(id).Tasks[task].Desired, s.Job(id).Tasks[task].Fresh))
		s.SetCompletion(id, task, facts.Completion{})
	}
	s.FinishIfDone(id)
}

// SetSuspended lets nothing more of a job ask for room, or lets it ask again.
func (s *State) SetSuspended(id terms.JobID, suspended bool) {
	s.changeJob(id, func(j *workload.Job) { j.Suspended = suspended })
	s.tryAnew(id)
}

// StopSlot ends the allocation of a seat for good: its node is told to end it if it has it, otherwise it has ended.
func (s *State) StopSlot(r facts.SlotRef, cause facts.Cause) {
	slot, _ := s.SlotAt(r)
	if s.Job(r.Job).MayLive(r, &slot) {
		// It may still run until it has certainly stopped itself.
		slot.Cause = cause
		s.SetSlot(r, slot)
		return
	}
	held := slot.Phase == facts.Assigned || slot.Phase == facts.Running || slot.Phase == facts.Stopping
	slot.Phase, slot.Since, slot.Deadline, slot.Preference, slot.Cause = facts.Stopped, s.Time, 0, facts.AnyNode, cause
	switch {
	case held:
		slot.Phase = facts.Stopping
	case r.Seat != facts.MainSeat:
		slot = facts.Slot{}
	case slot.Version == 0:
		slot.Version = s.Job(r.Job).Version
	}
	s.SetSlot(r, slot)
}

// FinishIfDone notes that a job has ended when nothing of it waits or holds room. One that is suspended, or wants
// nothing for now, does not end by itself.
func (s *State) FinishIfDone(id terms.JobID) {
	j := s.Job(id)
	if j.Finished != 0 || !j.Stop && (j.Spec.Type != terms.Batch || j.Suspended || j.None()) || j.Busy() {
		return
	}
	s.daemons.Delete(id)
	s.workflows.Delete(id)
	s.sharers.Delete(id)
	s.doubts.Note(id, false)
	if len(j.Awaits) > 0 {
		s.SetAwaits(id, nil)
	}
	account := s.editAccount(j.Pool)
	facts.Assert(account.Jobs > 0, "the pool of a job that ends has jobs")
	account.Jobs--
	s.countSpecs(j, -1)
	s.countWants(j, -1)
	s.changeJob(id, func(j *workload.Job) {
		j.Finished, j.FinishedAt = s.Index, s.Time
	})
	s.SetUpdate(id, j.Update, 0)
	s.countSpecs(s.Job(id), 1)
	for task := range j.Tasks {
		if j.KeepVolumes(task) > 0 {
			s.EachSlot(id, task, s.keepVolumes)
		}
	}
}

// Expire lets a finished job be forgotten at the end of the entry: until then what the entry does may name it.
// What its volumes hold is left to the next of its name.
func (s *State) Expire(id terms.JobID) {
	if s.Expired(id) {
		return
	}
	s.changeJob(id, func(j *workload.Job) { s.dropUpdateDeadline(j) })
	s.expired = append(s.expired, id)
	s.leaveVolumes(id)
}

// leaveVolumes leaves what a job that is forgotten has in its volumes to the next of its name.
func (s *State) leaveVolumes(id terms.JobID) {
	for task := range s.Job(id).Tasks {
		s.EachSlot(id, task, s.keepVolumes)
	}
	s.volumes.Leave(s.Job(id).Name(), id, s.Time)
}

// Expired tells whether a finished job is forgotten at the end of the entry.
func (s *State) Expired(id terms.JobID) bool { return slices.Contains(s.expired, id) }

// dropUpdateDeadline takes the deadline of a job's update out of those that are met.
func (s *State) dropUpdateDeadline(j *workload.Job) {
	if j.UpdateDeadline != 0 {
		s.deadlines.Delete(due{j.UpdateDeadline, facts.RefOfUpdate(j.ID)})
		j.UpdateDeadline = 0
	}
}

// ForgetJobs drops the jobs that have expired, and finished jobs beyond the limits. It is the last thing
// that an entry does: nothing names a job afterwards that is not there.
func (s *State) ForgetJobs() {
	for _, id := range s.expired {
		if s.Job(id) != nil {
			s.forgetJob(id)
		}
	}
	s.expired = nil
	for next, ok := s.finished.Excess(&s.Limits, s.Rules); ok; next, ok = s.finished.Excess(&s.Limits, s.Rules) {
		s.leaveVolumes(next.ID)
		s.forgetJob(next.ID)
	}
}

// forgetJob drops a finished job and all that is kept of it.
func (s *State) forgetJob(id terms.JobID) {
	s.SetNomination(id, facts.Nomination{})
	s.changeJob(id, func(j *workload.Job) { s.dropUpdateDeadline(j) })
	j := s.Job(id)
	facts.Assert(j.Finished != 0, "only jobs that have ended are forgotten")
	s.countSpecs(j, -1)
	s.digest -= j.Row
	for _, t := range j.Tasks {
		s.digest -= t.Digest + t.Row
	}
	s.jobs.Delete(id)
	if named, _ := s.jobNames.Get(j.Name()); named == id {
		s.jobNames.Delete(j.Name())
	}
}
