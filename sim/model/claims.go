package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/terms"
)

// claims are what is kept for the waiting work of a job.
type claims struct {
	job terms.JobID
	cluster.Claims
}

// claimsOf returns what is kept for a job, nil if nothing is.
func (m *Model) claimsOf(id terms.JobID) *claims {
	for i := range m.claims {
		if m.claims[i].job == id {
			return &m.claims[i]
		}
	}
	return nil
}

// keep replaces what is kept for a job.
func (m *Model) keep(id terms.JobID, kept cluster.Claims) {
	m.claims = slices.DeleteFunc(slices.Clone(m.claims), func(c claims) bool { return c.job == id })
	if len(kept.Seats) > 0 {
		m.claims = append(m.claims, claims{id, kept})
	}
}

// lift gives back what is kept for a job.
func (m *Model) lift(j *Job) (kept cluster.Claims) {
	if c := m.claimsOf(j.ID); c != nil {
		kept = c.Claims
		m.keep(j.ID, cluster.Claims{})
	}
	return kept
}

// trimClaims gives back what nobody waits for any more, or can have.
func (m *Model) trimClaims() {
	latest := slices.Clone(m.claims)
	slices.SortFunc(latest, func(a, b claims) int { return cmp.Compare(b.job, a.job) })
	for _, c := range latest {
		m.keep(c.job, m.trimmed(c.job, c.Claims))
	}
}

// awaits tells whether anybody has still to leave for the sake of a claim.
func (m *Model) awaits(c cluster.Claims) (found bool) {
	for _, j := range m.Jobs {
		j.each(func(s *seat) {
			on := slices.ContainsFunc(c.Seats, func(one cluster.Claim) bool { return one.Node == s.Node })
			found = found || s.Phase == cluster.Stopping && (on || slices.Contains(c.Leaving, s.ref()))
		})
	}
	return found
}

// runsOn counts the instances of a job on the nodes of some claims.
func (m *Model) runsOn(j *Job, seats []cluster.Claim) []uint32 {
	counts := make([]uint32, len(seats))
	j.each(func(s *seat) {
		for i, one := range seats {
			if s.Phase.Holds() && s.Node == one.Node && s.slot.task.number == one.Task {
				counts[i]++
			}
		}
	})
	return counts
}

// remaining returns what of the claims of a job is kept after its turn, before which so many of it ran on the nodes: what it has not taken,
// as long as any of those have to leave that were told to for a job of its pool, or nodes were kept there until this round for work that
// has patience.
func (p *placing) remaining(j *Job, c cluster.Claims, before []uint32) (kept cluster.Claims) {
	m := p.m
	c.Seats = slices.Clone(c.Seats)
	for i, now := range m.runsOn(j, c.Seats) {
		if now > before[i] {
			c.Seats[i].Count -= min(c.Seats[i].Count, now-before[i])
		}
	}
	kept = m.trimmed(j.ID, c)
	beside := m.beside(j)
	stops := c.Patient || m.awaits(c) || slices.ContainsFunc(beside, func(other *claims) bool { return m.awaits(other.Claims) })
	if !stops && m.dropPatient(kept.Seats) {
		p.again = append(p.again, j)
	}
	if !stops && !slices.Contains(p.again, j) {
		kept = cluster.Claims{}
	}
	if len(kept.Seats) == 0 && len(beside) > 0 {
		for _, r := range c.Leaving {
			if m.awaits(cluster.Claims{Leaving: []cluster.SlotRef{r}}) && !slices.Contains(beside[0].Leaving, r) {
				beside[0].Leaving = append(slices.Clone(beside[0].Leaving), r)
			}
		}
	}
	return kept
}

// beside returns the claims of the other jobs of a pool to which others give way, oldest job first.
func (m *Model) beside(j *Job) (all []*claims) {
	for i := range m.claims {
		if c := &m.claims[i]; c.job != j.ID && !c.Patient && m.poolOf(c.job) == m.poolOf(j.ID) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *claims) int { return cmp.Compare(a.job, b.job) })
	return all
}

// dropPatient gives up what is kept on some nodes for work that has patience.
func (m *Model) dropPatient(seats []cluster.Claim) bool {
	all := len(m.claims)
	m.claims = slices.DeleteFunc(slices.Clone(m.claims), func(c claims) bool {
		return c.Patient && slices.ContainsFunc(c.Seats, func(one cluster.Claim) bool {
			return slices.ContainsFunc(seats, func(other cluster.Claim) bool { return other.Node == one.Node })
		})
	})
	return len(m.claims) < all
}

// hold keeps what is claimed for a job in its pool as well, from those behind it; by -1 the job gets it back.
func (p *turns) hold(j *Job, c cluster.Claims, by int64) {
	if p.admission == nil || c.Patient {
		return
	}
	for _, one := range c.Seats {
		need := one.Need
		for k := range need {
			need[k] *= by
		}
		p.admission.Take(gangOf(j, need, 1), one.Count)
	}
}

// trimmed returns what of the claims of a job it still waits for and may have.
func (m *Model) trimmed(id terms.JobID, c cluster.Claims) (kept cluster.Claims) {
	at := slices.IndexFunc(m.Jobs, func(j *Job) bool { return j.ID == id })
	if at < 0 {
		return kept
	}
	kept.Patient, kept.Leaving = c.Patient, c.Leaving
	used := map[int]uint32{}
	for _, one := range c.Seats {
		one.Count = min(one.Count, m.Jobs[at].tasks[one.Task].gets()-used[one.Task])
		for !c.Patient && one.Count > 0 && m.Nodes[one.Node].open() && !m.covers(id, append(slices.Clone(kept.Seats), one), one.Node) {
			one.Count--
		}
		if one.Count > 0 && m.Nodes[one.Node].open() {
			used[one.Task] += one.Count
			kept.Seats = append(kept.Seats, one)
		}
	}
	if c.Patient && len(kept.Seats) < len(c.Seats) {
		return cluster.Claims{}
	}
	return kept
}

// covers tells whether a node has room for the claims of a job that are there, and for those of others to whom somebody gives way, when
// all have stopped that were told to.
func (m *Model) covers(id terms.JobID, own []cluster.Claim, n cluster.NodeIndex) bool {
	promised := slices.Clone(own)
	for _, c := range m.claims {
		if c.job != id && !c.Patient {
			promised = append(promised, c.Seats...)
		}
	}
	free := m.freeBy(m.Nodes[n])
	for k, amount := range m.kept(m.Nodes[n]) {
		free[k] += amount
	}
	last, short := own[len(own)-1].Need, false
	for k := range free {
		for _, one := range promised {
			if one.Node == n {
				free[k] -= one.Need[k] * int64(one.Count)
			}
		}
		short = short || last[k] > 0 && free[k] < 0
	}
	return !short
}
