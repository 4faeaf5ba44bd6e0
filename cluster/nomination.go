package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/tree"
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

// Unheld returns what nobody holds of a node, kept for others or not.
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
