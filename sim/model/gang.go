package model

import (
	"slices"

	"starling/cluster"
	"starling/schedule/share"
	"starling/terms"
)

type gangState int

const (
	gangWhole gangState = iota
	gangBroken
	gangGrowing
	gangAbsent
)

// gangState tells whether as many of a job run as must run together, and if not, whether any runs.
func (j *Job) gangState() gangState {
	missing, lost, living, fresh := j.missingAny(), uint32(0), uint32(0), uint32(0)
	for _, t := range j.tasks {
		used := min(uint32(t.used()), t.desired)
		first := min(t.missing(), t.desired-used)
		missing += t.missing()
		lost += t.missing() - first
		fresh += t.desired - used - first
		alive, _ := t.members()
		living += alive
	}
	lost += j.missingAny() - min(j.missingAny(), fresh)
	switch {
	case missing == 0:
		return gangWhole
	case living == 0:
		return gangAbsent
	case lost > 0:
		return gangBroken
	case j.newest().Grow == terms.GrowWhole:
		return gangGrowing
	}
	return gangWhole
}

// missing returns how many members of the job's gang a task lacks of its own least.
func (t *task) missing() uint32 {
	alive, done := t.members()
	return t.least() - min(t.least(), alive+done)
}

// lacks returns how many instances of a task may come to a gang that lost members; if that grows whole, those that had a node come back,
// or others for those that failed for good.
func (t *task) lacks(special bool) uint32 {
	if t.job.newest().Grow == terms.GrowEach {
		return t.missing() + t.job.missingAny()
	}
	lost, fresh := uint32(0), uint32(0)
	for _, other := range t.job.tasks {
		free := other.desired - min(uint32(other.used()), other.desired)
		first := min(other.missing(), free)
		fresh += free - first
		if other == t {
			lost = other.missing() - first
		}
	}
	lost += t.job.missingAny() - min(t.job.missingAny(), fresh)
	again := uint32(0)
	t.each(func(s *seat) {
		if s.kind == cluster.MainSeat && (s.waits() && !s.special() && s.slot.index < t.used() || s.Phase == cluster.Failed) {
			again++
		}
	})
	if special {
		return lost
	}
	return min(lost, again)
}

// members counts the main seats that run or are about to, and those that have succeeded.
func (t *task) members() (alive, done uint32) {
	for _, slot := range t.slots {
		switch slot.main().Phase {
		case cluster.Assigned, cluster.Running, cluster.Delayed, cluster.Away:
			alive++
		case cluster.Succeeded:
			done++
		}
	}
	return alive, done
}

// leastNeed returns what the missing members of a gang take at least, of each kind by itself.
func (p *placing) leastNeed(j *Job) (need terms.Amounts) {
	for k := range need {
		var choices []int64
		for _, t := range j.tasks {
			spec := t.spec(0)
			if spec == nil {
				continue
			}
			each := amountsOf(spec)[k]
			need[k] += each * int64(t.missing())
			free := uint32(len(t.waiting(false)) + len(t.waiting(true)))
			if spec.MaxRunning > 0 {
				free = min(free, spec.MaxRunning-min(spec.MaxRunning, t.live()))
			}
			for range free - min(free, t.missing()) {
				choices = append(choices, each)
			}
		}
		slices.Sort(choices)
		for _, each := range choices[:min(len(choices), int(j.missingAny()))] {
			need[k] += each
		}
	}
	return need
}

// allMembers places all that is missing of a job and notes what it needs, each seat in its version. What is claimed was
// found to be enough for all tasks together, but others may have to do. It tells whether the pool refused some.
func (p *turns) allMembers(j *Job, g *share.Gang) (fits, refused bool) {
	before, kept := len(p.trail), p.claims
	try := func(d *domain, claims cluster.Claims) bool {
		p.undo(before)
		p.domain, p.chosen, p.claims = d, true, claims
		all, no := p.gather(j, before)
		refused = refused || no
		return all
	}
	domains := p.domains(j)
	fits = len(kept.Seats) > 0 && j.newest().Within == "" && try(nil, kept)
	for i := 0; i < len(domains) && !fits; i++ {
		fits = len(kept.Seats) > 0 && j.newest().Within != "" && try(domains[i], kept) || try(domains[i], cluster.Claims{})
	}
	p.domain, p.chosen, p.claims = nil, false, kept
	if !fits {
		p.undo(before)
		return false, refused
	}
	g.Need = p.needSince(before)
	return true, false
}

// needSince returns what was placed since takes.
func (p *placing) needSince(before int) (need terms.Amounts) {
	for _, step := range p.trail[before:] {
		for k, amount := range amountsOf(step.s.spec()) {
			need[k] += amount
		}
	}
	return need
}

// gather places the members of a gang: those of each task, then of the first tasks as many as are needed beyond them and
// admitted.
func (p *turns) gather(j *Job, before int) (all, refused bool) {
	missing, beyond := map[*task]uint32{}, j.missingAny()
	for _, t := range j.tasks {
		missing[t] = t.missing()
	}
	for _, t := range j.tasks {
		if p.members(t, missing[t]) < missing[t] {
			return false, false
		}
	}
	var a share.Admission
	if p.admission != nil {
		a = *p.admission
		a.Take(gangOf(j, p.needSince(before), 1), 1)
	}
	for _, t := range j.tasks {
		most := min(beyond, t.gets())
		if t.spec(0) == nil || most == 0 {
			continue
		}
		g := gangOf(j, amountsOf(t.spec(0)), most)
		if p.admission != nil {
			refused = refused || a.Room(g) < most
			most = a.Room(g)
		}
		some := p.members(t, most)
		a.Take(g, some)
		beyond -= some
	}
	return beyond == 0, refused && beyond > 0
}

// members places up to most of a task: first what takes any node, then of the others those that find theirs.
func (p *placing) members(t *task, most uint32) (placed uint32) {
	if most == 0 {
		return 0
	}
	seats := t.waiting(false)
	placed = p.ordinary(t, seats[:min(len(seats), int(most))])
	seats = slices.DeleteFunc(t.waiting(true), func(s *seat) bool { return s.kind != cluster.MainSeat })
	for again := true; again; {
		again = false
		for _, s := range seats {
			if placed == most {
				return placed
			}
			p.look()
			if room := p.wished(s); s.waits() && room != nil {
				p.assign(s, room)
				placed++
				again = true
			}
		}
	}
	return placed
}
