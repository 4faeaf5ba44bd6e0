package cluster

// StopJob asks a job that is not finished to end: what waits is dropped, and what holds room is to stop.
func (s *State) StopJob(id JobID) {
	s.changeJob(id, func(j *Job) { j.Stop, j.Changed = true, s.Index })
	for i, t := range s.Job(id).Tasks {
		for index := range t.Fresh {
			slot := t.Slots.At(int(index))
			r := SlotRef{Job: id, Task: uint16(i), Index: index}
			switch {
			case slot.Phase == Waiting:
				slot.Phase, slot.Since = Stopped, s.Time
				s.SetSlot(r, slot)
			case slot.Phase.Holds() && slot.Phase != Stopping:
				s.StopSlot(r)
			}
		}
		s.setDesired(id, i, min(t.Desired, s.Job(id).Tasks[i].Fresh))
	}
	s.FinishIfDone(id)
}

// StopSlot tells the node of a slot that holds room to end it. One that waits for its restart ends at once.
func (s *State) StopSlot(r SlotRef) {
	slot, _ := s.SlotAt(r)
	phase := Stopping
	if slot.Phase == Delayed {
		phase = Stopped
		if !s.Job(r.Job).Stop && r.Index < s.Job(r.Job).Tasks[r.Task].Desired {
			phase = Waiting
		}
	}
	slot.Phase, slot.Since, slot.NotBefore = phase, s.Time, 0
	s.SetSlot(r, slot)
}

// FinishIfDone notes that a job has ended when nothing of it waits or holds room, and forgets the oldest finished jobs
// beyond the limits.
func (s *State) FinishIfDone(id JobID) {
	j := s.Job(id)
	if j.Finished != 0 || !j.Stop && j.Spec.Type != Batch {
		return
	}
	for _, t := range j.Tasks {
		if t.Waits() > 0 || t.Counts[Assigned]+t.Counts[Running]+t.Counts[Delayed]+t.Counts[Stopping] > 0 {
			return
		}
	}
	s.changeJob(id, func(j *Job) {
		j.Finished, j.FinishedAt, j.older = s.Index, s.Time, nil
		j.finishOrder = s.finishedNext
	})
	s.finished.Set(s.finishedNext, id)
	s.finishedNext++
	s.finishedSlots += j.slots()
	for s.finished.Len() > FinishedJobsMax || s.finishedSlots > FinishedSlotsMax && s.finished.Len() > 1 {
		_, oldest, _ := s.finished.Min()
		s.ForgetJob(oldest)
	}
}

// slots counts the slots of all tasks.
func (j *Job) slots() uint32 {
	count := uint32(0)
	for _, t := range j.Tasks {
		count += uint32(t.Slots.Len())
	}
	return count
}

// ForgetJob drops a finished job and all that is kept of it.
func (s *State) ForgetJob(id JobID) {
	j := s.Job(id)
	s.finished.Delete(j.finishOrder)
	s.finishedSlots -= j.slots()
	s.digest -= j.row
	for _, t := range j.Tasks {
		s.digest -= t.digest + t.row
	}
	s.jobs.Delete(id)
	if named, _ := s.jobNames.Get(j.Name()); named == id {
		s.jobNames.Delete(j.Name())
	}
}
