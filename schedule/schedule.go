// Package schedule takes the pass that follows every entry: from what is wanted to what runs where. Run is the page
// that shows it; each step has a package of its own that answers one question:
//
//	entitle    how much of the machines each pool may use now
//	share      how many virtual peers each task of a pool that shares them gets
//	admission  which gang or instance of a pool comes next
//	place      on which node it goes
//	preempt    which instances have to give way, where there is no room
//
// The unit is the gang: all of it is given nodes or nothing is. Every pool gives their turns to those that wait in it,
// in their order, as far as it is entitled to more. What is revocable comes after all else, since it takes what the
// others leave.
//
// A task that was tried on all nodes is blocked, and is tried again only on pages of nodes that got more room since:
// no other can help it, so the result is that of trying all.
package schedule

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/schedule/share"
	"starling/terms"
	"starling/terms/rules"
)

// Evict tells an instance to give way to a job, by a rule.
type Evict func(r facts.SlotRef, to terms.JobID, rule preempt.Rule)

// Run takes one pass. It divides, then admits and places until a round places nothing, then preempts for what should
// run and does not, and admits and places once more in the room that came of it. It returns false if it stopped at a
// limit of what an entry may do, so that there may be more. Visit, which may be nil, is called for every slot that was
// given a node; evict may be nil, and then nothing is preempted. What takes the place of instances that have ended with
// the entry, and needs no more, is placed first.
func Run(s *cluster.State, ended []place.Predecessor, visit place.Visit, evict Evict) (finished bool) {
	p := begin(s, visit, evict)
	defer p.end()
	if p.over {
		return true
	}
	p.ended = ended
	p.succeed()
	p.divide()
	p.trimNominations() // some may run less than before
	p.grown = united(p.grown, s.TakeDirtyPages())
	p.placeAll()
	s.TakePlacementDirty() // the next entry looks again at what follows from here on
	finished = p.left == 0 || p.preemptForDaemons() && p.left > 0 && p.preempt()
	p.trimNominations()
	p.shorts = nil
	if p.grown = s.TakeDirtyPages(); len(p.grown) > 0 && p.left > 0 {
		p.placeAll()
	}
	p.leave()
	p.divideAgain()
	judge(s)
	return finished && p.left > 0 && len(p.later) == 0
}

// succeed gives nodes to what takes the places of instances that have ended. Their pools held that room before, and are
// not asked.
func (p *pass) succeed() {
	for i := range p.ended {
		r := p.ended[i].Slot
		slot, ok := p.s.SlotAt(r)
		if !ok || slot.Phase != facts.Waiting || p.left == 0 || p.s.OrderedNow(r) {
			continue
		}
		j, key := p.s.Job(r.Job), facts.KeyOf(r.Job, int(r.Task))
		if slot.Special() {
			key = key.Special()
		}
		spec := j.TaskSpecOf(int(r.Task), cmp.Or(slot.Version, j.Version))
		if state := j.GangState(); state == gang.Absent || state == gang.Growing || j.Spec.Shares() || !p.s.Queued(key) ||
			spec == nil {
			continue
		}
		q := place.SearchFor(p.s, key, spec, p.visit)
		if q.Gaps = p.gaps; q.Follow(&p.ended[i], p.all) {
			p.left--
		}
	}
}

// placeAll takes rounds until one places nothing and gives no nomination up: what is placed may let others in, those
// that asked for neighbours, and those for which no room was kept as long as something before them could take it.
// Placing again would change nothing then.
func (p *pass) placeAll() {
	p.heads = resized(&p.memory.heads, len(p.s.Pools()))
	for before := p.left + 1; (before != p.left || p.dropped) && p.left > 0; {
		before, p.dropped, p.retrying = p.left, false, nil
		clear(p.heads)
		for _, x := range p.grouped {
			p.settle(x)
		}
		if p.s.Waiting() > 0 {
			p.round()
		}
		p.unblock(p.outgrown)
		p.outgrown, p.grown, p.regrown = nil, p.regrown, nil
	}
}

// entitle looks how much of the machines each pool may use now.
func (p *pass) entitle() {
	p.entitled = p.memory.entitle.Entitlements(p.s)
	p.ancestorLimits = admission.AncestorLimitsOf(p.s, p.entitled, nil)
}

// round gives everything that waits a turn: daemons, then every pool, of what they leave, with what is not revocable,
// then with what is.
func (p *pass) round() {
	t := &p.memory.turn
	*t = queuePass{pass: p, number: -1}
	if p.s.Rules < rules.DaemonsFirst {
		p.entitle()
	}
	if t.take(); p.s.Rules >= rules.DaemonsFirst {
		p.entitle()
	}
	for _, revocable := range [...]bool{false, true} {
		for number := range p.entitled {
			p.s.Visit(1)
			account := p.s.Account(number)
			if account.Asking == 0 || revocable && account.AskingRevocable == 0 {
				continue
			}
			pool := admission.PoolOf(p.s, number, &p.entitled[number], p.ancestorLimits.Of(number, revocable))
			*t = queuePass{pass: p, number: number, revocable: revocable, admission: admission.New(&pool), looks: heldBackMax}
			t.findNominated()
			t.take()
			now := p.s.Account(number).Held
			p.ancestorLimits.Charge(number, &account.Held, -1)
			p.ancestorLimits.Charge(number, &now, 1)
			entitle.TakeFirm(p.s.Pools(), p.entitled, number, now.NonPreemptible.Minus(account.Held.NonPreemptible))
		}
	}
}

// pass gives nodes to what waits, with one entry.
type pass struct {
	s      *cluster.State
	visit  place.Visit
	memory *memory
	// ended are the instances whose room is that of what takes their places.
	ended []place.Predecessor
	// over tells that nothing is to be done.
	over bool
	// left is how much this entry may still place.
	left uint32
	// all are the pages of nodes, grown those with nodes that have more room than with the last entry or round, regrown
	// those of which nominations were lifted in this round.
	all, grown, regrown []int
	gaps                *place.Gaps
	// later are the queue entries with seats of slots that were ordered with this entry already.
	later          []facts.TaskKey
	entitled       []entitle.Entitlement
	ancestorLimits *admission.AncestorLimits
	// outgrown are the blocked queue entries that were not admitted to try the nodes that have grown.
	outgrown []facts.TaskKey
	// grouped are the pools whose shares depend on where virtual peers are.
	grouped []*sharing
	// shorts are the daemons of which instances found no room on their nodes.
	shorts []short
	// spots are where instances may go that virtual peers run.
	spots place.Spots
	starving
}

// memory is what a pass works in. The next pass of the value uses it again: most entries place little.
type memory struct {
	pass    pass
	turn    queuePass
	search  place.Search
	gaps    place.Gaps
	entitle entitle.Memory
	heads   [][]head
	pages   []int
	// groups are those of the nodes, by the numbers of pools that share virtual peers.
	groups []*share.NodeGroups
}

// resized returns so many zero elements in memory that is used again.
func resized[T any](memory *[]T, length int) []T {
	*memory = slices.Grow((*memory)[:0], length)[:length]
	clear(*memory)
	return *memory
}

// begin makes ready for a pass.
func begin(s *cluster.State, visit place.Visit, evict Evict) *pass {
	s.WakeTimedOut()
	judge(s)
	m, _ := s.Scratch.Pass.(*memory)
	if s.Scratch.Pass = nil; m == nil {
		m = new(memory)
	}
	p := &m.pass
	m.gaps = *place.NewGaps(s)
	*p = pass{s: s, visit: visit, memory: m, left: s.Limits.Placements, gaps: &m.gaps}
	p.trimNominations()
	p.grown = s.TakeDirtyPages()
	due, waits := s.StarvingDue()
	if !s.TakePlacementDirty() && len(p.grown) == 0 && !s.Unfinished && (!waits || due > s.Time) {
		p.over = true
		return p
	}
	for page := len(m.pages); page < s.RoomPages(); page++ {
		m.pages = append(m.pages, page)
	}
	p.all = m.pages[:s.RoomPages()]
	p.starving = starving{evict: evict, plans: int(s.Limits.Preemptions)}
	return p
}

// end leaves the memory of the pass to the next, with nothing in it that would be kept from being collected.
func (p *pass) end() {
	s, m := p.s, p.memory
	clear(m.heads[:cap(m.heads)])
	m.pass, m.turn, m.search, m.gaps = pass{}, queuePass{}, place.Search{}, place.Gaps{}
	s.Scratch.Pass = m
}

// leave lets the next entry try all nodes for what this one could not finish with: which nodes have grown is forgotten
// with it.
func (p *pass) leave() {
	for _, one := range p.shorts {
		p.s.SetBlocked(one.key, false)
	}
	p.unblock(p.later)
	if p.left == 0 {
		p.unblock(slices.DeleteFunc(p.s.QueuedKeys(), func(key facts.TaskKey) bool { return !p.s.Blocked(key) }))
	}
}

// unblock lets queue entries try all nodes.
func (p *pass) unblock(keys []facts.TaskKey) {
	for _, key := range keys {
		p.s.SetBlocked(key, false)
	}
}
