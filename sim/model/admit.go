package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/schedule/entitle"
	"starling/schedule/share"
	"starling/terms"
)

// placing is the placement of one entry.
type placing struct {
	m        *Model
	entitled []entitle.Entitlement
	rooms    []*room
	// known are the requests for devices of what had some when placement began.
	known []shape
	// trail has what was placed, and what had the seats before.
	trail []step
	// spent is for how many daemons' instances room was made.
	spent uint32
	// heads are those that wait although they might have room, by pool in the order of their turns.
	heads [][]head
	// grounds are the pools to which it matters where virtual peers are, spots how many more of their tasks may go where.
	grounds []*ground
	spots   spots
	// trying tells that a gang is tried, whatever is left.
	trying bool
	// later tells that something has to wait for the next entry, ended that nothing more may be placed with this one.
	later, ended bool
	// claims is what was claimed for the job that has its turn.
	claims cluster.Claims
	// domain is where members of a gang are tried while one was chosen, nil for everywhere.
	domain *domain
	chosen bool
	// dropped tells that something claimed was given back.
	dropped bool
	// again are the jobs for which that was done in this round, so that they may have what came free with the next.
	again []*Job
}

// left is how much may still be placed with the entry.
func (p *placing) left() uint32 {
	switch {
	case p.ended:
		return 0
	case p.trying:
		return p.m.limits.Placements
	}
	return p.m.limits.Placements - uint32(len(p.trail)) - p.spent
}

// step is one placement, with what was before it.
type step struct {
	s        *seat
	before   seat
	portNext uint16
}

// turns are the turns of those that wait in one pool, with one entry.
type turns struct {
	*placing
	// number is that of the pool, -1 for daemons, which are not admitted and have no admission.
	number    int
	revocable bool
	admission *share.Admission
	// questions is how many may still be asked whether nodes could ever have them.
	questions int
	// underWay tells that others gave way to the job whose turn it is.
	underWay bool
	// kept is what was kept for the job whose turn it is, before how many of it ran there.
	kept   cluster.Claims
	before []uint32
	// holding are the jobs for which the pool keeps what others free for them.
	holding []*Job
}

const questionsMax = 8

// lane is what waits of a task for any node and the newest version, or for a particular one.
type lane struct {
	rank    int
	t       *task
	special bool
}

// placeAll places everything that waits, is admitted and fits, lets others give way to the rest, and places again. It tells
// whether it reached the end.
func (m *Model) placeAll() bool {
	m.trimClaims()
	p := &placing{m: m, known: m.shapes(), grounds: m.share()}
	m.trimClaims()
	p.rounds()
	finished := p.left() == 0 || p.feedDaemons() && p.left() > 0 && p.feed()
	m.trimClaims()
	p.rooms = nil
	p.rounds()
	for _, j := range m.Jobs {
		j.endPatience()
	}
	return finished && !p.later && p.left() > 0
}

// Fitting names a task of which something waits although it is admitted and fits somewhere, "" if there is none.
func (m *Model) Fitting() string {
	p, found, kept := &placing{m: m, known: m.shapes(), grounds: m.share()}, "", m.claims
	p.rounds()
	if len(p.trail) > 0 {
		found = string(p.trail[0].s.job().newest().Name) + "." + string(p.trail[0].s.slot.task.name)
	}
	p.undo(0)
	m.claims = kept
	return found
}

// rounds gives everybody a turn until a round places nothing: daemons, then every pool with what is not revocable, then with
// what is.
func (p *placing) rounds() {
	for before := -1; (before < len(p.trail) || p.dropped) && p.left() > 0; {
		before, p.dropped, p.again = len(p.trail), false, nil
		p.settleGrounds()
		p.entitled, p.heads = p.m.entitlements(), make([][]head, len(p.m.pools))
		p.of(-1, false).take()
		for _, revocable := range []bool{false, true} {
			for number := range p.m.pools {
				path := p.m.pools[number].Path
				before := p.m.account(path).Held
				p.of(number, revocable).take()
				now := p.m.account(path).Held
				entitle.TakeFirm(p.m.pools, p.entitled, number, now.NonPreemptible.Minus(before.NonPreemptible))
			}
		}
	}
}

// of returns the turns of a pool.
func (p *placing) of(number int, revocable bool) *turns {
	all := &turns{placing: p, number: number, revocable: revocable, questions: questionsMax}
	if number < 0 {
		return all
	}
	spec := &p.m.pools[number]
	account := p.m.account(spec.Path)
	one := &share.Pool{Entitlement: p.entitled[number], Allocated: account.Held, Lasting: account.Lasting, Now: p.m.time}
	for k := range one.Firm {
		one.Firm[k], one.ControllerLimit[k] = p.entitled[number].Firm[k], spec.ControllerMost(terms.Kind(k))
	}
	ceiling := p.m.ceiling(number, revocable)
	one.Ceiling = &ceiling
	admission := share.NewAdmission(one)
	all.admission = &admission
	return all
}

// take gives everybody in the pool a turn, each time the next behind the last as they are ordered by then.
func (p *turns) take() {
	var tried *Job
	for last := (lane{rank: -1}); p.left() > 0; {
		next, ok := p.next(last)
		if !ok {
			return
		}
		last = next
		j := next.t.job
		others := len(p.m.claims)
		kept := p.m.lift(j)
		p.kept, p.before = kept, p.m.runsOn(j, kept.Seats)
		if p.underWay = len(kept.Seats) > 0 && !kept.Patient; len(kept.Seats) > 0 {
			p.rooms = nil
		}
		if p.claims = kept; slices.Contains(p.holding, j) {
			p.hold(j, kept, -1)
		}
		p.holding = slices.DeleteFunc(p.holding, func(other *Job) bool { return other == j })
		p.turn(next, tried != j)
		if tried = j; len(kept.Seats) > 0 {
			left := p.remaining(j, kept, p.before)
			p.dropped = p.dropped || len(p.m.claims) < others-1 || !slices.Equal(left.Seats, kept.Seats)
			p.m.keep(j.ID, left)
			p.rooms = nil
		}
		if left := p.m.claimsOf(j.ID); left != nil {
			p.hold(j, left.Claims, 1)
			p.holding = append(p.holding, j)
		}
	}
}

// turn places what it can of a lane. A gang is placed when its job comes up first.
func (p *turns) turn(l lane, first bool) {
	switch j := l.t.job; j.gangState() {
	case gangAbsent, gangGrowing:
		if first && p.gang(j) {
			p.claims, p.rooms = p.remaining(j, p.kept, p.before), nil
			p.singles(l, l.t.gets())
		}
	case gangBroken:
		p.singles(l, min(l.t.gets(), l.t.lacks(l.special)))
	default:
		p.singles(l, l.t.gets())
	}
}

// next returns the first lane behind one.
func (p *turns) next(last lane) (first lane, ok bool) {
	for _, j := range p.m.Jobs {
		spec := j.newest()
		daemon := spec.Type == terms.Daemon
		if daemon != (p.number < 0) || !daemon && (spec.Revocable != p.revocable || p.m.poolNumber(spec.Name.Pool()) != p.number) {
			continue
		}
		rank := j.rank()
		for _, t := range j.tasks {
			for _, l := range []lane{{rank, t, false}, {rank, t, true}} {
				if (last.t == nil || l.compare(last) > 0) && (!ok || l.compare(first) < 0) && t.queued(l.special) {
					first, ok = l, true
				}
			}
		}
	}
	return first, ok
}

func (l lane) compare(other lane) int {
	order := func(l lane) int {
		if l.special {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(l.rank, other.rank), cmp.Compare(l.t.job.ID, other.t.job.ID), cmp.Compare(l.t.number, other.t.number),
		cmp.Compare(order(l), order(other)))
}

// rank orders the jobs of a pool: broken gangs first, then by priority.
func (j *Job) rank() int {
	if j.gangState() == gangBroken {
		return 0
	}
	return 1 + terms.PriorityMax - int(j.newest().Priority)
}

// queued tells whether a lane of a task waits to be placed.
func (t *task) queued(special bool) bool { return len(t.waiting(special)) > 0 && t.asks() > 0 }

// waiting returns the seats that wait for any node and the newest version, or the others.
func (t *task) waiting(special bool) (all []*seat) {
	t.each(func(s *seat) {
		if s.waits() && s.special() == special {
			all = append(all, s)
		}
	})
	return all
}

// gangOf returns work of a job that needs so much each time.
func gangOf(j *Job, need terms.Amounts, count uint32) *share.Gang {
	spec := j.newest()
	return &share.Gang{
		Need: need, Count: count, Revocable: spec.Revocable, NonPreemptible: spec.NonPreemptible(), Controller: spec.Controller,
		RunsAtMost: spec.RunsAtMost(),
	}
}

// room returns how many of the equal gangs are admitted.
func (p *turns) room(g *share.Gang) uint32 {
	if p.admission == nil {
		return g.Count
	}
	return p.admission.Room(g)
}

func (p *turns) took(g *share.Gang, count uint32) {
	if p.admission != nil {
		p.admission.Take(g, count)
	}
}

// await keeps room for who is refused, if he is the first of his class and nodes could ever have him.
func (p *turns) await(g *share.Gang, possible func() bool) {
	class := terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
	if p.admission == nil || p.admission.Awaits(class) || p.questions == 0 {
		return
	}
	if p.questions--; possible() {
		p.admission.Await(g, func() []share.Unit { return p.m.units(p.number) })
	}
}

// units returns what runs in a pool and ends by itself, a gang as one.
func (m *Model) units(number int) (all []share.Unit) {
	for _, j := range m.Jobs {
		if j.finished != 0 || j.newest().Type != terms.Batch || m.poolOf(j.ID) != number {
			continue
		}
		var own []share.Unit
		total, known := terms.Amounts{}, true
		j.each(func(s *seat) {
			if !s.Phase.Holds() {
				return
			}
			need, u := amountsOf(s.spec()), share.Unit{}
			if u.Work.Add(j.newest(), &need, 1); s.Phase == cluster.Running && s.spec().RunsAtMost() > 0 {
				u.Ends = s.Since + s.spec().RunsAtMost()
			}
			for k := range total {
				total[k] += need[k]
			}
			own, known = append(own, u), known && u.Ends > 0
		})
		if j.hasGang() && len(own) > 0 {
			whole := share.Unit{}
			whole.Work.Add(j.newest(), &total, 1)
			for _, u := range own {
				if known {
					whole.Ends = max(whole.Ends, u.Ends)
				}
			}
			own = []share.Unit{whole}
		}
		all = append(all, own...)
	}
	return all
}

// singles places up to most of a lane, each by itself.
func (p *turns) singles(l lane, most uint32) {
	if l.special {
		p.specials(l, most)
		return
	}
	seats, spec := l.t.waiting(false), l.t.spec(0)
	if most = min(most, uint32(len(seats))); most == 0 {
		return
	}
	g := gangOf(l.t.job, amountsOf(spec), most)
	room := p.room(g)
	placed := p.ordinary(l.t, seats[:min(room, p.left())])
	p.took(g, placed)
	switch {
	case p.left() == 0 || placed == most:
	case placed < room:
		p.m.beginPatience(l.t, false)
		p.hungry(head{job: l.t.job, t: l.t, most: room - placed, entitled: true}, g)
	default:
		p.hungry(p.refused(head{job: l.t.job, t: l.t, most: most - placed}, g), g)
		p.await(g, func() bool { return p.possible(l.t.job, spec) })
	}
}

// ordinary places seats of a task that take any node, until one fits nowhere.
func (p *placing) ordinary(t *task, seats []*seat) (placed uint32) {
	p.look()
	running := t.running(len(p.rooms))
	for _, one := range p.claims.Seats {
		for left := one.Count; one.Task == t.number && left > 0 && int(placed) < len(seats); left-- {
			s := seats[placed]
			room := p.choose(s.search(), running, func(r *room) bool { return r.node.number == one.Node })
			if room == nil {
				break
			}
			p.assign(s, room)
			running[s.Node]++
			placed++
		}
	}
	for _, s := range seats[placed:] {
		room := p.choose(s.search(), running, nil)
		if room == nil {
			break
		}
		p.assign(s, room)
		running[s.Node]++
		placed++
	}
	return placed
}

// specials places up to most seats that want a particular node or version, as long as any can be placed. Those of a slot
// that was ordered with this entry wait for the next, and canaries wait for a gang that lost members.
func (p *turns) specials(l lane, most uint32) {
	refused, later, broken := false, false, l.t.job.gangState() == gangBroken
	most = min(most, p.left())
	for again := true; again; {
		again = false
		seats := l.t.waiting(true)
		if broken {
			seats = slices.DeleteFunc(seats, func(s *seat) bool { return s.kind != cluster.MainSeat })
		}
		for _, s := range seats {
			if most == 0 {
				break
			}
			p.look()
			room := p.wished(s)
			if room == nil {
				continue
			}
			g := gangOf(l.t.job, amountsOf(s.spec()), 1)
			if p.room(g) == 0 {
				if !refused {
					p.await(g, func() bool { return p.possible(l.t.job, s.spec()) })
				}
				refused = true
				continue
			}
			if s.slot.ordered(p.m.index) != nil {
				later = true
				continue
			}
			p.assign(s, room)
			p.took(g, 1)
			again = true
			most--
		}
	}
	p.later = p.later || later
	if later || !refused && most > 0 && len(l.t.waiting(true)) > 0 {
		p.m.beginPatience(l.t, true)
	}
}

// gang places all that is missing of a job of which nothing runs, or nothing.
func (p *turns) gang(j *Job) bool {
	beyond := j.missingAny()
	g, count, spare, later := gangOf(j, p.leastNeed(j), 1), beyond, uint32(0), false
	for _, t := range j.tasks {
		missing := t.missing()
		count += missing
		if missing == 0 && beyond == 0 {
			continue
		}
		members := slices.DeleteFunc(t.waiting(true), func(s *seat) bool { return s.kind != cluster.MainSeat })
		asks := min(t.gets(), uint32(len(members)+len(t.waiting(false))))
		if asks < missing {
			return false
		}
		spare += asks - missing
		later = later || slices.ContainsFunc(members, func(s *seat) bool { return s.slot.ordered(p.m.index) != nil })
	}
	if spare < beyond {
		return false
	}
	possible := func() bool { return p.couldGang(j) }
	reject := func() {
		p.hungry(p.refused(head{job: j}, g), g)
		p.await(g, possible)
	}
	if p.room(g) == 0 {
		reject()
		return false
	}
	before, left := len(p.trail), p.left()
	p.trying = true
	fits, refused := p.allMembers(j, g)
	p.trying = false
	switch {
	case !fits && refused:
		reject()
	case !fits:
		for _, t := range j.tasks {
			p.m.beginPatience(t, false)
			p.m.beginPatience(t, true)
		}
		p.hungry(head{job: j, entitled: true}, g)
	case p.room(g) == 0: // members of an older version need more
		p.undo(before)
		p.await(g, possible)
	case later:
		p.later = true
		p.undo(before)
	case count > left:
		p.ended = true
		p.undo(before)
	default:
		p.took(g, 1)
		return true
	}
	return false
}

// undo takes placements back.
func (p *placing) undo(to int) {
	for len(p.trail) > to {
		last := p.trail[len(p.trail)-1]
		p.trail = p.trail[:len(p.trail)-1]
		p.m.Nodes[last.s.Node].portNext = last.portNext
		if onPeers(last.s.spec()) {
			p.spots.take(last.s.slot.task, p.m.Nodes[last.s.Node], -1)
		}
		*last.s = last.before
		p.rooms = p.m.rooms()
	}
}

// possible tells whether nodes could have an instance of a job if all work were done that ends by itself.
func (p *placing) possible(j *Job, spec *terms.Task) bool {
	return p.could(spec, 1, false, func(n *Node) bool { return p.within(j, n) }) == 1
}

// could returns how many instances nodes that may be named could have then, or if they were empty, at most most.
func (p *placing) could(spec *terms.Task, most uint32, empty bool, among func(*Node) bool) uint32 {
	all := int64(0)
	for _, n := range p.m.Nodes {
		if n.open() && among(n) {
			all += p.ever(n, spec, int64(most), empty)
		}
	}
	return uint32(min(all, int64(most)))
}

// ever returns how many instances a node could have, or could if it were empty, at most most.
func (p *placing) ever(n *Node, spec *terms.Task, most int64, empty bool) int64 {
	r := &room{node: n, free: n.offer.Capacity}
	for _, s := range p.m.on(n) {
		for k := range r.free {
			if s.job().newest().Type != terms.Batch && !empty {
				r.free[k] -= s.spec().Resources[k]
			}
		}
	}
	for k, amount := range spec.Resources {
		if amount > 0 {
			most = min(most, max(r.free[k], 0)/amount)
		}
	}
	if r.exclusive() && !slices.ContainsFunc(spec.Constraints, asksExclusive) {
		return 0
	}
	for i := range spec.Constraints {
		if c := &spec.Constraints[i]; !c.Soft && !c.Social() && !holdsAt(nil, r, c) {
			return 0
		}
	}
	return n.has(spec, most)
}

// has returns for how many instances a node has devices at all, at most most.
func (n *Node) has(spec *terms.Task, most int64) int64 {
	for _, d := range spec.Devices {
		count := int64(0)
		for _, offer := range n.offer.Devices {
			if offer.Kind == d.Kind && (len(d.Models) == 0 || slices.Contains(d.Models, offer.Model)) {
				count = int64(offer.Count)
			}
		}
		if d.Amount < 1000 {
			most = min(most, count*int64(1000/d.Amount))
		} else {
			most = min(most, count/int64(d.Amount/1000))
		}
	}
	if spec.PerNodeMax > 0 {
		most = min(most, int64(spec.PerNodeMax))
	}
	return most
}
