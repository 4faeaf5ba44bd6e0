package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/tree"
	"starling/terms"
)

// ClaimsOf returns what is kept for a job; ok is false if nothing is.
func (s *State) ClaimsOf(id terms.JobID) (c facts.Claims, ok bool) { return s.claims.Get(id) }

// ClaimingJobs returns the jobs for which room is kept, oldest first.
func (s *State) ClaimingJobs() []terms.JobID { return s.claims.Keys() }

// SetClaims replaces what is kept for a job; no seats keep nothing.
func (s *State) SetClaims(id terms.JobID, c facts.Claims) {
	if old, ok := s.claims.Get(id); ok {
		s.keep(old.Seats, -1)
		s.digest -= old.Hash(id)
		s.claims.Delete(id)
	}
	if len(c.Seats) > 0 {
		s.keep(c.Seats, 1)
		s.digest += c.Hash(id)
		s.claims.Set(id, c)
	}
}

// keep takes room from what others see as free, or gives it back.
func (s *State) keep(seats []facts.Claim, times int64) {
	for i := range seats {
		seat := &seats[i]
		row, free := s.editNode(seat.Node), s.Free(seat.Node)
		for k := range seat.Need {
			amount := seat.Need[k] * int64(seat.Count) * times
			if row.claimed[k] += amount; k < int(terms.KindCount) {
				free[k] -= amount
			}
		}
		facts.Assert(row.claimed.Within(terms.Unlimited), "what is kept on a node is not negative")
		s.setFree(seat.Node, free, s.Eligible(seat.Node))
	}
}

// Unheld returns what nobody holds of a node, claimed or not.
func (s *State) Unheld(n facts.NodeIndex) terms.Resources {
	free, row := s.Free(n), s.Node(n)
	for k := range free {
		free[k] += row.claimed[k]
	}
	return free
}

// FreeAmounts returns what a node has left of all that pools divide, without what is claimed.
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
		free[k] -= row.claimed[k]
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
