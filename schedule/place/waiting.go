package place

import (
	"slices"

	"starling/cluster"
	"starling/cluster/gang"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/terms"
)

// heldBackMax bounds, for each pool and entry, how many of those that wait are asked whether nodes could ever have
// them.
const heldBackMax = 8

// pass gives nodes to what waits, with one entry.
type pass struct {
	s     *cluster.State
	visit Visit
	// left is how much this entry may still place.
	left uint32
	// all are the pages of nodes, grown those with nodes that have more room than with the last entry or round, regrown
	// those of which claims were lifted in this round.
	all, grown, regrown []int
	gaps                *gaps
	// later are the lanes with seats of slots that were ordered with this entry already.
	later    []cluster.TaskKey
	entitled []entitle.Entitlement
	ceilings *admission.Ceilings
	// outgrown are the blocked lanes that were not admitted to try the nodes that have grown.
	outgrown []cluster.TaskKey
	// grounded are the pools whose shares depend on where virtual peers are.
	grounded []*sharing
	// shorts are the daemons of which instances found no room on their nodes.
	shorts []short
	// spots are where instances may go that virtual peers run.
	spots spots
	hunger
}

// Waiting places what waits, is admitted and fits. It returns false if it stopped at the limit of placements, so that
// there may be more.
//
// What is placed may let others in: those who asked for neighbours, or for whom no room was kept as long as somebody
// before them could take it. So everybody has a turn until a round places nothing, and placing again would change
// nothing.
func Waiting(s *cluster.State, visit Visit, evict Evict) (finished bool) {
	s.WakeLapsed()
	p := &pass{s: s, visit: visit, left: s.Limits.Placements, gaps: &gaps{known: s.CopyShapes()}}
	p.trimClaims()
	p.grown = s.TakeGrown()
	due, hungry := s.HungerDue()
	if !s.TakeStirred() && len(p.grown) == 0 && !s.Unfinished && (!hungry || due > s.Time) {
		return true
	}
	p.all = make([]int, s.RoomPages())
	for page := range p.all {
		p.all[page] = page
	}
	p.hunger, p.spots = hunger{evict: evict, plans: int(s.Limits.Preemptions)}, spots{}
	p.share()
	p.trimClaims() // some may run less than before
	p.grown = united(p.grown, s.TakeGrown())
	p.rounds()
	s.TakeStirred() // the next entry looks again at what follows from here on
	finished = p.left == 0 || p.feedDaemons() && p.left > 0 && p.feed()
	p.trimClaims()
	p.roundsAfter()
	for _, key := range p.later {
		s.SetBlocked(key, false)
	}
	if p.left == 0 {
		unblockRest(s)
	}
	p.shareAgain()
	return finished && p.left > 0 && len(p.later) == 0
}

// roundsAfter gives everybody their turns on the room that was left by what gave way at once.
func (p *pass) roundsAfter() {
	p.shorts = nil
	if p.grown = p.s.TakeGrown(); len(p.grown) > 0 && p.left > 0 {
		p.rounds()
	}
	for _, one := range p.shorts {
		p.s.SetBlocked(one.key, false) // the next entry asks what may give way there now
	}
}

// rounds gives everybody their turns until nothing is placed any more, and no claim given back.
func (p *pass) rounds() {
	p.heads = make([][]head, len(p.s.Pools()))
	for before := p.left + 1; (before != p.left || p.dropped) && p.left > 0; {
		before, p.dropped, p.retrying = p.left, false, nil
		clear(p.heads)
		for _, x := range p.grounded {
			p.settle(x)
		}
		if p.s.Waiting() > 0 {
			p.entitled, p.ceilings = entitle.Entitlements(entitle.Of(p.s)), admission.CeilingsOf(p.s, nil)
			p.round()
		}
		for _, key := range p.outgrown {
			p.s.SetBlocked(key, false)
		}
		p.outgrown, p.grown, p.regrown = nil, p.regrown, nil
	}
}

// round gives everybody a turn: daemons, then every pool with what is not revocable, then with what is.
func (p *pass) round() {
	t := &turns{pass: p, number: -1}
	t.take()
	for _, revocable := range [...]bool{false, true} {
		for number := range p.entitled {
			p.s.Visit(1)
			account := p.s.Account(number)
			if account.Asking == 0 || revocable && account.AskingRevocable == 0 {
				continue
			}
			pool := admission.PoolOf(p.s, number, &p.entitled[number], p.ceilings.Of(number, revocable))
			*t = turns{pass: p, number: number, revocable: revocable, admission: admission.New(&pool), looks: heldBackMax}
			t.findClaimers()
			t.take()
			now := p.s.Account(number).Held
			p.ceilings.Charge(number, &account.Held, -1)
			p.ceilings.Charge(number, &now, 1)
			entitle.TakeFirm(p.s.Pools(), p.entitled, number, now.NonPreemptible.Minus(account.Held.NonPreemptible))
		}
	}
}

// turns gives those that wait in one pool their turns.
type turns struct {
	*pass
	number    int
	revocable bool
	// admission is of no use to daemons, which are not admitted.
	admission admission.Admission
	// looks is how many may still be asked whether nodes could ever have them.
	looks int
	// gang is the job whose gang was tried last.
	gang terms.JobID
	// underWay tells that others gave way to the job whose turn it is.
	underWay bool
	// claimers are the jobs to which others give way, holding those of them that have had a turn: from then on the pool
	// keeps for them what the others free.
	claimers, holding []terms.JobID
	// claims is what was claimed for the job that has its turn.
	claims cluster.Claims
}

// daemons tells whether the turns are those of daemons.
func (p *turns) daemons() bool { return p.number < 0 }

func (p *turns) take() {
	for at := p.s.FirstTurn(p.number); p.left > 0; {
		next, ok := p.s.NextTurn(at, p.wanted)
		if !ok {
			return
		}
		if at = next; p.turn(next) {
			// The job's lanes have their turns as single instances, from the first on.
			id, _ := next.Key.Split()
			at.Key = cluster.KeyOf(id, 0) - 1
		}
	}
}

// wanted tells whether something may come of a turn: it may be admitted, or room may be kept for it.
func (p *turns) wanted(t cluster.Turn) bool {
	p.s.Visit(1)
	switch {
	case p.daemons():
		// What is kept for a daemon is given up with its turn when nobody leaves for it any more, wherever the last one was.
		return !t.Blocked || len(p.grown) > 0 || p.claimsFor(jobOf(t.Key))
	case (t.Class == terms.Revocable) != p.revocable:
		return false
	case len(p.claimers) > 0 && slices.Contains(p.claimers, jobOf(t.Key)):
		return true
	case p.admission.Fits(t.Class, &t.Need,
		p.admission.Guarantees() && p.admission.Passes(p.s.Job(jobOf(t.Key)).Spec.RunsAtMost())):
	case p.looks > 0 && !p.admission.Awaits(t.Class):
		return true
	default:
		p.refused(t.Key, t.Blocked)
		return false
	}
	return !t.Blocked || len(p.grown) > 0 || len(p.heads[p.number]) < int(p.s.Limits.Preemptions)
}

// claimsFor tells whether room is kept for a job.
func (p *pass) claimsFor(id terms.JobID) bool {
	_, ok := p.s.ClaimsOf(id)
	return ok
}

// refused notes that a lane is not admitted. If nodes have grown, it is to try all when it is.
func (p *turns) refused(key cluster.TaskKey, blocked bool) {
	if blocked && len(p.grown) > 0 {
		p.outgrown = append(p.outgrown, key)
	}
}

// turn places what it can of one lane of a task, or the gang of its job; then it returns true.
func (p *turns) turn(t cluster.Turn) (gangPlaced bool) {
	id, task := t.Key.Split()
	j := p.s.Job(id)
	claims, lifted := p.lift(id)
	if p.claims = claims; lifted {
		p.release(j, claims)
		before := p.runsOn(id, claims.Seats)
		defer func() {
			p.restore(id, claims, before)
			p.hold(id)
		}()
	}
	p.underWay = lifted && !claims.Patient
	switch j.GangState() {
	case gang.Absent, gang.Growing:
		if p.gang == id {
			return false
		}
		p.gang = id
		return p.placeGang(j)
	case gang.Broken:
		p.singles(j, t.Key, min(j.Tasks[task].Asks(), lacks(j, t.Key)))
	default:
		p.singles(j, t.Key, j.Tasks[task].Asks())
	}
	return false
}

// singles places up to most instances of one lane of a task, each by itself.
func (p *turns) singles(j *cluster.Job, key cluster.TaskKey, most uint32) {
	if !p.s.Queued(key) {
		return
	}
	blocked := p.s.Blocked(key)
	if most == 0 {
		p.refused(key, blocked)
		return
	}
	if key.IsSpecial() {
		p.special(j, key, most)
		return
	}
	q := newSearch(p.s, key, p.visit).within(p.spots)
	q.gaps = p.gaps
	most = min(most, taskOf(p.s, key).Waits())
	gang := admission.GangOf(j, q.spec.Amounts(), most)
	room, placed := p.room(gang), uint32(0)
	if room > 0 && (!blocked || len(p.grown) > 0) {
		placed = q.claimed(&p.claims, min(room, p.left, most))
		placed += q.among(p.pages(blocked), min(room, p.left)-placed)
		p.took(gang, placed)
	}
	switch {
	case p.left == 0 || placed == most:
	case placed == room:
		p.refused(key, blocked)
		p.hungry(p.refusedHead(head{job: j.ID, key: key, most: most - placed}, gang), gang)
		p.await(gang, func() bool { return q.possible(1) })
	default:
		if !blocked {
			p.s.SetBlocked(key, true)
		}
		p.hungry(head{job: j.ID, key: key, most: room - placed, entitled: true}, gang)
	}
}

// pages returns the nodes on which a lane is tried: one for which all were tried before only those that have grown.
func (p *turns) pages(blocked bool) []int {
	if blocked {
		return p.grown
	}
	return p.all
}

// special places up to most seats that wait for a particular node or version.
func (p *turns) special(j *cluster.Job, key cluster.TaskKey, most uint32) {
	blocked := p.s.Blocked(key)
	q := newSearch(p.s, key, p.visit).within(p.spots)
	q.gaps, q.members = p.gaps, j.GangState() == gang.Broken
	q.admit = func(spec *terms.Task, later bool) bool {
		gang := admission.GangOf(j, spec.Amounts(), 1)
		if p.room(gang) == 0 {
			if q.refused {
				return false
			}
			q.refused = true
			p.await(gang, func() bool { return searchFor(p.s, key, spec, nil).possible(1) })
			return false
		}
		if !later {
			p.took(gang, 1)
		}
		return true
	}
	if blocked && len(p.grown) == 0 {
		return
	}
	most = min(most, p.left)
	placed, finished := q.special(p.pages(blocked), most)
	if p.number < 0 && p.evict != nil && taskOf(p.s, key).SpecialWaits() > 0 {
		p.lacksRoom(key, p.pages(blocked))
	}
	if q.refused {
		p.refused(key, blocked)
	}
	switch waits := taskOf(p.s, key).SpecialWaits() > 0; {
	case !finished:
		p.s.SetBlocked(key, true)        // its patience begins
		p.s.SetBlocked(key, placed == 0) // the next round may admit more with what was placed
		p.later = append(p.later, key)
	case waits && placed < most && !blocked && !q.refused:
		p.s.SetBlocked(key, true)
	}
}

// room returns how many of the equal gangs are admitted now.
func (p *turns) room(g *admission.Gang) uint32 {
	if p.daemons() {
		return g.Count
	}
	return p.admission.Room(g)
}

// took notes that so many of the equal gangs were placed.
func (p *turns) took(g *admission.Gang, count uint32) {
	p.left -= count
	if !p.daemons() {
		p.admission.Take(g, count)
	}
}

// await keeps room for a gang that has to wait, if it is the first of its class and nodes could ever have it.
func (p *turns) await(g *admission.Gang, possible func() bool) {
	if p.daemons() || p.looks == 0 {
		return
	}
	class := terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
	if p.admission.Awaits(class) {
		return
	}
	if p.looks--; possible() {
		p.admission.Await(g, func() []admission.Unit { return admission.UnitsOf(p.s, p.number) })
	}
}

// possible tells whether nodes could have so many instances if all work were done that ends by itself.
func (q *search) possible(count uint32) bool { return q.could(q.domain, count, false) == count }

// could returns how many instances nodes of a domain could have then, at most most; or if they were empty.
func (q *search) could(d *domain, most uint32, empty bool) (count uint32) {
	d.each(q.s, func(n cluster.NodeIndex) bool {
		if !q.s.Eligible(n) || !q.exclusive && q.s.Node(n).Offer.Purpose() == terms.ExclusiveWork ||
			d != nil && !d.has(q.s.Node(n)) {
			return true
		}
		yields := q.s.Yields(n)
		if empty {
			yields = q.s.Node(n).Offer.Capacity
		}
		times := q.spec.Resources.Times(&yields, most-count)
		if times > 0 && (len(q.spec.Constraints) == 0 || q.ever(n)) {
			count += min(most-count, q.offers(q.s.Node(n), times))
		}
		return count < most
	})
	return count
}

// ever tells whether the rules about a node itself hold.
func (q *search) ever(n cluster.NodeIndex) bool {
	q.asked = q.s.Node(n)
	for i := range q.spec.Constraints {
		if c := &q.spec.Constraints[i]; !c.Soft && !c.Social() && !c.Holds(q) {
			return false
		}
	}
	return true
}

// offers returns for how many instances the node has devices at all, at most most.
func (q *search) offers(node *cluster.Node, most uint32) uint32 {
	for i := range q.spec.Devices {
		request := &q.spec.Devices[i]
		offer := node.DeviceOf(request.Kind)
		switch {
		case !request.Takes(offer.Model):
			return 0
		case request.Share():
			most = min(most, offer.Count*uint32(terms.WholeDevice/request.Amount))
		default:
			most = min(most, offer.Count/uint32(request.Amount/terms.WholeDevice))
		}
	}
	if q.spec.PerNodeMax > 0 {
		most = min(most, q.spec.PerNodeMax)
	}
	return most
}

func jobOf(key cluster.TaskKey) terms.JobID {
	id, _ := key.Split()
	return id
}

func taskOf(s *cluster.State, key cluster.TaskKey) *cluster.Task {
	id, task := key.Split()
	return s.Job(id).Tasks[task]
}

// unblockRest lets every task try all nodes with the next entry: which nodes grew is forgotten with this one.
func unblockRest(s *cluster.State) {
	for _, key := range s.QueuedKeys() {
		if s.Blocked(key) {
			s.SetBlocked(key, false)
		}
	}
}
