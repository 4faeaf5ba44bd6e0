package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/tree"
	"starling/terms"
)

// Sharers returns the jobs whose instances virtual peers run and that have not finished, the oldest first.
func (s *State) Sharers() []terms.JobID { return s.sharers.Keys() }

// setSharing notes whether virtual peers run the newest version of a job.
func (j *Job) setSharing(s *State) {
	s.setShared(j.Pool, 0) // its tasks are others, or have no shares
	if j.Spec.Shares() {
		s.sharers.Insert(j.ID)
		s.Stirred = true
		return
	}
	s.sharers.Delete(j.ID)
	for task, t := range j.Tasks {
		if t.ShareBound > 0 {
			s.changeTask(j.ID, task, func(t *Task) { t.ShareBound = 0 })
		}
	}
}

// stirShares lets placement look at what virtual peers run of a job: what is over needs none.
func (s *State) stirShares(j *Job, old, next facts.Phase) {
	s.Stirred = s.Stirred || old != next && j.Spec.Shares()
}

// SetShare bounds the instances of a task that run at a time. Those that run already stay.
func (s *State) SetShare(id terms.JobID, task int, share uint32) {
	if s.Job(id).Tasks[task].ShareBound == share+1 {
		return
	}
	assert(share+1 != 0 && s.Job(id).Spec.Shares(), "only what virtual peers run has a share")
	s.changeTask(id, task, func(t *Task) { t.ShareBound = share + 1 })
	s.SetBlocked(facts.KeyOf(id, task), false)
	s.SetBlocked(facts.KeyOf(id, task).Special(), false)
}

// SharedBy returns the fingerprint of what the virtual peers of the pool at a number were divided from last; ok is false if
// that is not known.
func (s *State) SharedBy(number int) (fingerprint uint64, ok bool) {
	return s.shared.Get(s.pools.IDs[number])
}

// SetShared notes from what the virtual peers of a pool are divided.
func (s *State) SetShared(number int, fingerprint uint64) {
	s.setShared(s.pools.IDs[number], fingerprint)
}

// setShared is SetShared for an account; 0 forgets what is known.
func (s *State) setShared(id tree.ID, fingerprint uint64) {
	old, known := s.shared.Delete(id)
	if known {
		s.digest -= facts.SharedHash(id, old)
	}
	if fingerprint != 0 {
		s.shared.Set(id, fingerprint)
		s.digest += facts.SharedHash(id, fingerprint)
	}
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
