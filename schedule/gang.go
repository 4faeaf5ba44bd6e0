package schedule

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/admission"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// missing counts the members that a gang lacks, and tells whether all nodes were tried for it; ready is false if some
// of them are not to be tried yet.
func (p *queuePass) missing(j *workload.Job) (members uint32, blocked, ready bool) {
	blocked = true
	spare, beyond := uint32(0), j.MissingAny()
	for task, t := range j.Tasks {
		missing := j.Missing(task)
		asks := min(t.Waits()+uint32(t.SpecialWaits())-t.Secondary[facts.Waiting], t.Asks())
		if asks < missing {
			return 0, false, false
		}
		members += missing
		spare += asks - missing
		if missing > 0 || beyond > 0 {
			key := facts.KeyOf(j.ID, task)
			blocked = blocked && (!p.s.Queued(key) || p.s.Blocked(key)) &&
				(!p.s.Queued(key.Special()) || p.s.Blocked(key.Special()))
		}
	}
	// Whether a pool admits members that may be of any task depends on which of them find nodes.
	return members + beyond, blocked && (!mixed(j) || beyond == 0 && p.s.GangTried(j)), spare >= beyond
}

// mixed tells whether members of a gang may be of several tasks, or mind what runs beside them. What finds room by
// itself finds none where there is less, but whether one task after the other finds room for all depends on what runs
// there.
func mixed(j *workload.Job) bool {
	tasks, social, beyond := 0, false, j.Spec.GangBeyond()
	for task := range j.Tasks {
		if spec := j.TaskSpecOf(task, j.Version); spec != nil && (spec.MinAvailable > 0 || beyond > 0) {
			tasks++
			social = social || slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool { return c.Social() })
		}
	}
	return tasks > 1 || social
}

// lacks returns how many instances of a queue entry may come to a gang that lost members. One that grows whole takes
// only those that it lost: such as had a node before, or new ones in the stead of those that failed for good.
func lacks(j *workload.Job, key facts.TaskKey) uint32 {
	_, task := key.Split()
	row, t := j.GangRow(task), j.Tasks[task]
	count, beyond := j.GangCount()
	if j.Spec.Grow == terms.GrowWhole {
		lost := row.Missing() - min(row.Missing(), row.Fresh) + count.LostAny(beyond)
		if !key.IsSpecial() {
			lost = min(lost, t.Waits()-row.Fresh+t.Counts[facts.Failed])
		}
		return lost
	}
	return row.Missing() + count.Any(beyond)
}

// placeGang places the missing members of a gang: all of them, or nothing.
func (p *queuePass) placeGang(j *workload.Job) bool {
	members, blocked, ready := p.missing(j)
	if !ready {
		p.refuseGang(j)
		return false
	}
	gang := admission.GangOf(j, j.GangNeed(), 1)
	switch {
	case p.room(gang) == 0:
		p.rejectGang(j, gang)
	case blocked && len(p.grown) == 0:
		p.blockGang(j) // others of the job may wait since then
		p.starve(head{job: j.ID, entitled: true}, gang)
	default:
		t := p.tryGang(j, blocked)
		if t.s != nil {
			gang.Need = needOf(t.s, t.placed)
		}
		switch {
		case t.s == nil && t.refused:
			p.rejectGang(j, gang)
		case t.s == nil:
			p.blockGang(j)
			p.starve(head{job: j.ID, entitled: true}, gang)
		case p.room(gang) == 0: // members of an older version need more
			p.await(gang, func() bool { return possibleGang(p.s, j, false) })
		case p.comesLater(j):
		case members > p.left:
			p.left = 0 // the next entry has room for all
		default:
			*p.s = *t.s
			p.spots.Join(t.spots, j)
			for _, r := range t.placed {
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

// rejectGang notes that a gang is not admitted.
func (p *queuePass) rejectGang(j *workload.Job, gang *admission.Gang) {
	p.refuseGang(j)
	p.starve(p.refusedHead(head{job: j.ID}, gang), gang)
	p.await(gang, func() bool { return possibleGang(p.s, j, false) })
}

// refuseGang notes that no queue entry of a gang may try the nodes.
func (p *queuePass) refuseGang(j *workload.Job) {
	for task := range j.Tasks {
		key := facts.KeyOf(j.ID, task)
		p.refused(key, p.s.Blocked(key))
		p.refused(key.Special(), p.s.Blocked(key.Special()))
	}
}

// needOf returns what the slots need, each in its version.
func needOf(s *cluster.State, slots []facts.SlotRef) (need terms.Amounts) {
	for _, r := range slots {
		slot, _ := s.SlotAt(r)
		for k, amount := range s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Amounts() {
			need[k] += amount
		}
	}
	return need
}

// comesLater notes that a gang with a seat of a slot that was ordered with this entry already waits for the next.
func (p *queuePass) comesLater(j *workload.Job) (later bool) {
	beyond := j.MissingAny() > 0
	for task, t := range j.Tasks {
		t.EachSpecial(j.ID, task, func(r facts.SlotRef, _ facts.Slot) bool {
			later = later || r.Seat == facts.MainSeat && (j.Missing(task) > 0 || beyond) && p.s.OrderedNow(r)
			return !later
		})
	}
	for task := range j.Tasks {
		if key := facts.KeyOf(j.ID, task); later {
			p.later = append(p.later, key, key.Special())
		}
	}
	return later
}

// possibleGang tells whether nodes could have the missing members together if all work were done that ends by itself,
// or if they were empty; those of one domain if they belong into one. Earlier rules ask about each task alone.
func possibleGang(s *cluster.State, j *workload.Job, empty bool) bool {
	if j.Spec.Within == "" {
		return couldHave(s, j, nil, empty)
	}
	home, found := place.HomeOf(s, j)
	division := s.EnsureDivision(j.Spec.Within)
	for at, value := range division.Values {
		if value != "" && (!found || value == home) && couldHave(s, j, place.NewDomain(division, at), empty) {
			return true
		}
	}
	return false
}

// couldHave tells whether nodes of a domain could have the missing members: found one task after the other, or if that
// fails, first those of which nodes could have the fewest.
func couldHave(s *cluster.State, j *workload.Job, d *place.Domain, empty bool) bool {
	searches := searchesOf(s, j)
	fits := func(t *place.Together) bool {
		_, left := membersIn(j, searches, func(q *place.Search, most uint32) uint32 { return q.Beside(t, d, most) })
		return left == 0
	}
	switch {
	case !fits(&place.Together{Empty: empty}):
		return false
	case s.Rules < rules.Unsuited || len(searches) == 1 || fits(place.NewTogether(empty)):
		return true
	}
	fewest := make([]uint32, len(searches))
	for task, q := range searches {
		if q.Spec != nil {
			fewest[task] = q.Could(d, terms.InstancesMax, empty)
		}
	}
	slices.SortStableFunc(searches, func(a, b *place.Search) int {
		return cmp.Compare(fewest[a.Task()], fewest[b.Task()])
	})
	return fits(place.NewTogether(empty))
}

func searchesOf(s *cluster.State, j *workload.Job) []*place.Search {
	searches := make([]*place.Search, len(j.Tasks))
	for task := range j.Tasks {
		searches[task] = place.NewSearch(s, facts.KeyOf(j.ID, task), nil)
	}
	return searches
}

// membersIn returns how many instances of each task a gang needs: what is missing of each, and of those that may be of
// any task as many of the first ones as nodes could have. Left are those that no nodes could have.
func membersIn(j *workload.Job, searches []*place.Search,
	could func(q *place.Search, most uint32) uint32) (counts []uint32,
	left uint32) {
	beyond := j.MissingAny()
	counts = make([]uint32, len(j.Tasks))
	for _, q := range searches {
		task := q.Task()
		missing, asks := j.Missing(task), j.Tasks[task].Asks()
		most := missing + min(beyond, asks-min(asks, missing))
		if q.Spec == nil || most == 0 {
			left += missing
			continue
		}
		some := could(q, most)
		left += missing - min(some, missing)
		counts[task] = max(some, missing)
		beyond -= counts[task] - missing
	}
	return counts, left + beyond
}

// blockGang notes that all nodes were tried for a gang.
func (p *queuePass) blockGang(j *workload.Job) {
	p.s.SetGangTried(j.ID)
	for task := range j.Tasks {
		key := facts.KeyOf(j.ID, task)
		for _, entry := range [...]facts.TaskKey{key, key.Special()} {
			if p.s.Queued(entry) && !p.s.Blocked(entry) {
				p.s.SetBlocked(entry, true)
			}
		}
	}
}

// trial is a copy of the value with members of a gang placed, and what is left of the spots then. Without a value there
// is no room for all; refused tells that the pool refused some.
type trial struct {
	s       *cluster.State
	placed  []facts.SlotRef
	spots   place.Spots
	refused bool
}

// tryGang tries to place the missing members: first where room is kept for them, for that was found to be enough for
// all tasks together, and one task after the other might not find it; then in each domain in which they may be
// together.
func (p *queuePass) tryGang(j *workload.Job, tried bool) (t trial) {
	for task, row := range j.Tasks {
		missing := j.Missing(task)
		missing -= min(missing, uint32(row.SpecialWaits())) // they may be of a version that needs less
		if missing > 0 && !place.NewSearch(p.s, facts.KeyOf(j.ID, task), nil).Enough(missing) {
			return t
		}
	}
	refused := false
	try := func(d *place.Domain, nomination *facts.Nomination) bool {
		t = p.tryMembers(j, d, nomination)
		refused = refused || t.refused
		return t.s != nil
	}
	nominated := len(p.nomination.Seats) > 0
	if nominated && j.Spec.Within == "" && try(nil, &p.nomination) {
		return t
	}
	for _, d := range p.domains(j, tried) {
		if nominated && j.Spec.Within != "" && try(d, &p.nomination) || try(d, &facts.Nomination{}) {
			return t
		}
	}
	return trial{refused: refused}
}

// tryMembers places the missing members on a copy: those of each task, and then of the first tasks as many as the gang
// needs beyond them.
func (p *queuePass) tryMembers(j *workload.Job, d *place.Domain, nomination *facts.Nomination) trial {
	m := &members{queuePass: p, job: j.ID, domain: d, nomination: nomination,
		trial: trial{s: p.s.Copy(), spots: p.spots.Fork(j)}}
	defer func() { p.s.Visit(int(m.trial.s.Visited() - p.s.Visited())) }()
	for task := range j.Tasks {
		if missing := j.Missing(task); m.place(task, missing) < missing {
			return trial{}
		}
	}
	beyond := j.MissingAny()
	if beyond == 0 {
		return m.trial
	}
	var a *admission.Admission
	if !p.daemons() {
		copied := p.admission
		a = &copied
		a.Take(admission.GangOf(j, needOf(m.s, m.placed), 1), 1)
	}
	for task := range j.Tasks {
		beyond -= m.more(task, beyond, a)
	}
	if beyond > 0 {
		return trial{refused: m.trial.refused}
	}
	m.trial.refused = false
	return m.trial
}

// members are the members of a gang that are placed on a copy.
type members struct {
	*queuePass
	trial
	job        terms.JobID
	domain     *place.Domain
	nomination *facts.Nomination
}

// more places up to most instances of a task as far as its pool admits them.
func (m *members) more(task int, most uint32, a *admission.Admission) uint32 {
	j := m.trial.s.Job(m.job)
	spec := j.TaskSpecOf(task, j.Version)
	if most = min(most, j.Tasks[task].Asks()); spec == nil || most == 0 {
		return 0
	}
	gang := admission.GangOf(j, spec.Amounts(), most)
	if a == nil {
		return m.place(task, most)
	}
	room := a.Room(gang)
	m.trial.refused = m.trial.refused || room < most
	placed := m.place(task, room)
	a.Take(gang, placed)
	return placed
}

// place places up to most instances of a task.
func (m *members) place(task int, most uint32) (placed uint32) {
	if most == 0 {
		return 0
	}
	note := func(r facts.SlotRef) { m.placed = append(m.placed, r) }
	q := place.NewSearch(m.trial.s, facts.KeyOf(m.job, task), note).Within(m.trial.spots).In(m.domain)
	pages := m.all
	if q.Gaps = m.gaps; m.domain != nil {
		pages = m.domain.Pages
	}
	placed = q.Nominated(m.nomination, most)
	placed += q.Among(pages, most-placed)
	if placed < most {
		some, _ := q.SpecialSeats(true).Special(pages, most-placed)
		placed += some
	}
	return placed
}
