package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/preemptible"
	"starling/cluster/tree"
	"starling/cluster/workload"
	"starling/terms"
)

// NominationOf returns what is kept for a job; ok is false if nothing is.
func (s *State) NominationOf(id terms.JobID) (c facts.Nomination, ok bool) {
	return s.nominations.Get(id)
}

// NominatedJobs returns the jobs for which room is kept, oldest first.
func (s *State) NominatedJobs() []terms.JobID { return s.nominations.Keys() }

// SetNomination replaces what is kept for a job; no seats keep nothing.
func (s *State) SetNomination(id terms.JobID, c facts.Nomination) {
	if old, ok := s.nominations.Get(id); ok {
		s.keep(old.Seats, -1)
		s.digest -= old.Hash(id)
		s.nominations.Delete(id)
	}
	if len(c.Seats) > 0 {
		s.keep(c.Seats, 1)
		s.digest += c.Hash(id)
		s.nominations.Set(id, c)
	}
}

// keep takes room from what others see as free, or gives it back.
func (s *State) keep(seats []facts.NominatedSeat, times int64) {
	for i := range seats {
		seat := &seats[i]
		row, free := s.editNode(seat.Node), s.Free(seat.Node)
		for k := range seat.Need {
			amount := seat.Need[k] * int64(seat.Count) * times
			if row.nominated[k] += amount; k < int(terms.KindCount) {
				free[k] -= amount
			}
		}
		facts.Assert(row.nominated.Within(terms.Unlimited), "what is kept on a node is not negative")
		s.setFree(seat.Node, free, s.Eligible(seat.Node))
	}
}

// Unheld returns what nothing holds of a node, kept for others or not.
func (s *State) Unheld(n facts.NodeIndex) terms.Resources {
	free, row := s.Free(n), s.Node(n)
	for k := range free {
		free[k] += row.nominated[k]
	}
	return free
}

// FreeAmounts returns what a node has left of all that pools divide, without what is kept for others.
func (s *State) FreeAmounts(n facts.NodeIndex) (free terms.Amounts) {
	row := s.Node(n)
	if row.Offer != nil {
		free = row.Offer.Amounts()
	}
	for _, use := range row.Devices {
		if k, ok := terms.DeviceKind(use.Kind); ok {
			free[k] -= int64(use.Amount)
		}
	}
	for k := terms.GPU; k < terms.AmountCount; k++ {
		free[k] -= row.nominated[k]
	}
	rest := s.Free(n)
	copy(free[:], rest[:])
	return free
}

// StarvingOf returns since when a pool's work waits for room that others have; ok is false if none does.
func (s *State) StarvingOf(number int) (h facts.Starving, ok bool) {
	return s.starving.Get(s.pools.IDs[number])
}

// SetStarving notes that a pool's work waits for room that others have; nil that none does.
func (s *State) SetStarving(number int, h *facts.Starving) {
	id := s.pools.IDs[number]
	if old, ok := s.starving.Delete(id); ok {
		s.digest -= old.Hash(id)
	}
	if h != nil {
		s.starving.Set(id, *h)
		s.digest += h.Hash(id)
	}
}

// StarvingDue returns the earliest time at which others are asked to give way; ok is false if there is none.
func (s *State) StarvingDue() (at terms.Time, ok bool) {
	s.starving.Scan(func(_ tree.ID, h facts.Starving) bool {
		if !h.Failed && (!ok || h.At < at) {
			at, ok = h.At, true
		}
		return true
	})
	return at, ok
}

// What could be preempted, and what stops already.

// Preemptible returns the index of what could be preempted, for reading.
func (s *State) Preemptible() *preemptible.Index { return &s.preemptible }

// PoolAt returns where the pool of an account stands in the tree.
func (s *State) PoolAt(id tree.ID) int { return int(s.pools.Positions[id]) }

// StoppingIn returns what those hold of the pool at a number that were told to stop.
func (s *State) StoppingIn(number int) terms.Work { return s.preemptible.Stopping(s.pools.IDs[number]) }

// countPreemptible counts instances of a version of a job that hold room and are preemptible, or no more.
func (s *State) countPreemptible(pool tree.ID, spec *terms.Job, times int64) {
	if class, ok := preemptible.ClassOf(pool, spec); ok && times != 0 {
		s.PlacementDirty = true
		s.preemptible.Count(s.epoch, class, times)
	}
}

// movePreemptible notes that a seat that holds room, or did, has another row.
func (s *State) movePreemptible(j *workload.Job, r facts.SlotRef, old, next *facts.Slot) {
	if old.Phase != next.Phase || old.Cause != next.Cause {
		s.moveStopping(j, r, old, -1)
		s.moveStopping(j, r, next, 1)
	}
	s.notePreemptible(j, r, next)
}

// moveStopping notes that what is in a seat leaves its room to others, if it does, or with -1 that it does no more.
func (s *State) moveStopping(j *workload.Job, r facts.SlotRef, slot *facts.Slot, times int64) {
	if preemptible.Leaves(slot, s.Rules) {
		need, work := j.TaskSpecOf(int(r.Task), slot.Version).Amounts(), terms.Work{}
		work.Add(j.Spec, &need, times)
		s.preemptible.Stop(j.Account(), slot.Node, &work)
	}
}

// notePreemptible notes what is in a seat if it could be preempted.
func (s *State) notePreemptible(j *workload.Job, r facts.SlotRef, slot *facts.Slot) {
	class, counted := preemptible.ClassOf(j.Pool, j.Spec)
	if stage, ok := preemptible.StageOf(slot.Phase); ok && counted {
		s.preemptible.Note(s.epoch, class, slot.Node, preemptible.Least{Stage: stage, Since: slot.Since, Slot: r})
	}
}

// reclass counts what runs of a job by its newest version, and no more by the one before: the priority may be another.
func (s *State) reclass(j *workload.Job, was *terms.Job) {
	s.countPreemptible(j.Pool, j.Spec, j.LiveSeats())
	s.countPreemptible(j.Pool, was, -j.LiveSeats())
	for task := range j.Tasks {
		if j.Spec.Priority == was.Priority {
			return
		}
		s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			s.notePreemptible(j, r, &slot)
			return true
		})
	}
}

// TightenPreemptible visits what holds room on the nodes of a page, and makes its bounds exact, so that the next search
// passes it over.
func (s *State) TightenPreemptible(page int, visit func(*workload.Job, facts.SlotRef, *facts.Slot)) {
	s.preemptible.Forget(s.epoch, page)
	for n := page * NodesPerPage; n < min((page+1)*NodesPerPage, s.Nodes()); n++ {
		for _, r := range s.Node(facts.NodeIndex(n)).Held {
			slot, _ := s.SlotAt(r)
			j := s.Job(r.Job)
			s.notePreemptible(j, r, &slot)
			visit(j, r, &slot)
		}
	}
}
