package place

import (
	"starling/cluster"
	"starling/schedule/share"
	"starling/terms"
)

// missing counts the members that a gang lacks, and tells whether all nodes were tried for it; ready is false if some of
// them are not to be tried yet.
func (p *turns) missing(j *cluster.Job) (members uint32, blocked, ready bool) {
	blocked = true
	for task, t := range j.Tasks {
		missing := j.Missing(task)
		if missing == 0 {
			continue
		}
		if waits := t.Waits() + uint32(t.SpecialWaits()) - t.Beside[cluster.Waiting]; min(waits, t.Asks()) < missing {
			return 0, false, false
		}
		members += missing
		key := cluster.KeyOf(j.ID, task)
		blocked = blocked && (t.Waits() == 0 || p.s.Blocked(key)) && (t.SpecialWaits() == 0 || p.s.Blocked(key.Special()))
	}
	return members, blocked && p.s.GangTried(j), true
}

// placeGang places the gang of a job of which nothing runs: all of it, or nothing.
func (p *turns) placeGang(j *cluster.Job) bool {
	members, blocked, ready := p.missing(j)
	if !ready {
		p.refuseGang(j)
		return false
	}
	gang := share.GangOf(j, j.GangNeed(), 1)
	switch {
	case p.room(gang) == 0:
		p.refuseGang(j)
		p.hungry(p.refusedHead(head{job: j.ID}, gang), gang)
		p.await(gang, func() bool { return p.possibleGang(j) })
	case blocked && len(p.grown) == 0:
		p.hungry(head{job: j.ID, entitled: true}, gang)
	default:
		trial, placed := p.tryGang(j)
		if trial != nil {
			gang.Need = needOf(trial, placed)
		}
		switch {
		case trial == nil:
			p.blockGang(j)
			p.hungry(head{job: j.ID, entitled: true}, gang)
		case p.room(gang) == 0: // members of an older version need more
			p.await(gang, func() bool { return p.possibleGang(j) })
		case p.comesLater(j):
		case members > p.left:
			p.left = 0 // the next entry has room for all
		default:
			*p.s = *trial
			p.spots.join(p.trial, j)
			for _, r := range placed {
				if p.visit != nil {
					p.visit(r)
				}
			}
			p.took(gang, 1)
			p.left -= members - 1
			return true
		}
	}
	return false
}

// refuseGang notes that no lane of a gang may try the nodes.
func (p *turns) refuseGang(j *cluster.Job) {
	for task := range j.Tasks {
		key := cluster.KeyOf(j.ID, task)
		p.refused(key, p.s.Blocked(key))
		p.refused(key.Special(), p.s.Blocked(key.Special()))
	}
}

// needOf returns what the slots need, each in its version.
func needOf(s *cluster.State, slots []cluster.SlotRef) (need terms.Amounts) {
	for _, r := range slots {
		slot, _ := s.SlotAt(r)
		for k, amount := range s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Amounts() {
			need[k] += amount
		}
	}
	return need
}

// comesLater notes that a gang with a seat of a slot that was ordered with this entry already waits for the next.
func (p *turns) comesLater(j *cluster.Job) (later bool) {
	for task, t := range j.Tasks {
		t.EachSpecial(j.ID, task, func(r cluster.SlotRef, _ cluster.Slot) bool {
			later = later || r.Seat == cluster.MainSeat && j.Missing(task) > 0 && p.s.OrderedNow(r)
			return !later
		})
	}
	for task := range j.Tasks {
		if key := cluster.KeyOf(j.ID, task); later {
			p.later = append(p.later, key, key.Special())
		}
	}
	return later
}

// possibleGang tells whether nodes could have the missing members of each task if all work were done that ends by itself.
func (p *turns) possibleGang(j *cluster.Job) bool {
	for task := range j.Tasks {
		if missing := j.Missing(task); missing > 0 && !newSearch(p.s, cluster.KeyOf(j.ID, task), nil).possible(missing) {
			return false
		}
	}
	return true
}

// blockGang notes that all nodes were tried for a gang.
func (p *turns) blockGang(j *cluster.Job) {
	p.s.SetGangTried(j.ID)
	for task := range j.Tasks {
		key := cluster.KeyOf(j.ID, task)
		for _, lane := range [...]cluster.TaskKey{key, key.Special()} {
			if p.s.Queued(lane) && !p.s.Blocked(lane) {
				p.s.SetBlocked(lane, true)
			}
		}
	}
}

// tryGang places the missing members on a copy of the value, and returns the copy and who was placed if all have nodes.
func (p *turns) tryGang(j *cluster.Job) (trial *cluster.State, placed []cluster.SlotRef) {
	for task := range j.Tasks {
		if missing := j.Missing(task); missing > 0 && !newSearch(p.s, cluster.KeyOf(j.ID, task), nil).enough(missing) {
			return nil, nil
		}
	}
	if len(p.claims.Seats) > 0 {
		if trial, placed = p.tryMembers(j, &p.claims); trial != nil {
			return trial, placed
		}
	}
	return p.tryMembers(j, &cluster.Claims{})
}

// tryMembers places the missing members on a copy, first where room is claimed for them: that was found to be enough for
// all tasks together, and one task after the other might not find it.
func (p *turns) tryMembers(j *cluster.Job, claims *cluster.Claims) (trial *cluster.State, placed []cluster.SlotRef) {
	trial, fork := p.s.Copy(), p.spots.fork(j)
	note := func(r cluster.SlotRef) { placed = append(placed, r) }
	for task := range j.Tasks {
		missing := j.Missing(task)
		q := newSearch(trial, cluster.KeyOf(j.ID, task), note).within(fork)
		q.gaps = p.gaps
		if missing > 0 {
			missing -= q.claimed(claims, missing)
		}
		if missing > 0 {
			missing -= q.among(p.all, missing)
		}
		if missing > 0 {
			q.key, q.members = q.key.Special(), true
			some, _ := q.special(p.all, missing)
			missing -= some
		}
		if missing > 0 {
			return nil, nil
		}
	}
	p.trial = fork
	return trial, placed
}

// claimed places up to most instances where room is claimed for them.
func (q *search) claimed(claims *cluster.Claims, most uint32) (placed uint32) {
	if q.spec == nil || len(claims.Seats) == 0 {
		return 0
	}
	most = min(most, q.task().Waits())
	q.s.Divide(q.key, q.spec)
	_, task := q.key.Split()
	for _, seat := range claims.Seats {
		for left := seat.Count; seat.Task == task && left > 0 && placed < most && q.fitsNow(seat.Node); left-- {
			q.assign(seat.Node, 1)
			if placed++; q.minds {
				q.s.Divide(q.key, q.spec)
			}
		}
	}
	return placed
}

// enough tells, at little cost, whether nodes may have room for so many instances of the task; if not they have not.
func (q *search) enough(count uint32) bool {
	for page := range q.s.RoomPages() {
		for _, kept := range q.purposes() {
			q.s.EachRoom(page, kept, &q.spec.Resources, func(_ cluster.NodeIndex, free *terms.Resources) bool {
				count -= min(count, q.spec.Resources.Times(free, count))
				return count > 0
			})
			if count == 0 {
				return true
			}
		}
	}
	return false
}
