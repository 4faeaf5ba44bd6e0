package explain

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/workload"
	"starling/schedule"
	"starling/schedule/admission"
	"starling/schedule/entitle"
	"starling/schedule/entitle/explanation"
	"starling/schedule/explain/wording"
	"starling/terms"
	"starling/terms/pool"
)

// queueForecast is what is known of work that waits in a pool.
type queueForecast struct {
	*schedule.QueueForecast
	e     *explainer
	path  terms.PoolPath
	spec  *terms.Pool
	queue *schedule.Queue
	// bounds are those of the pool that keep the work waiting, the widest first.
	bounds []bound
	// gang is the room for a gang that is admitted whole.
	gang schedule.GangRoom
	// yielding is what becomes of those who have the room.
	yielding *yielding
}

// bound is something of its pool into which the work does not fit, in one kind.
type bound struct {
	by               limitation
	kind             terms.Kind
	most, held, need int64
	// freed is what less important work of the pool gives back to what may have the rest.
	freed int64
	// above is the pool whose limit it is, if it is not that of the work.
	above terms.PoolPath
}

// limitation is what a pool bounds.
type limitation uint8

const (
	byEntitlement limitation = iota
	bySlack
	byReservation
	byControllers
	byAncestorLimit
	byStatic
)

// queueForecast returns what is known of a queue entry of the task; nil if it waits in no pool.
func (e *explainer) queueForecast(key facts.TaskKey) *queueForecast {
	o, ok := schedule.NewQueueForecast(e.s.Copy(), key)
	if !ok {
		return nil
	}
	p := &queueForecast{QueueForecast: o, e: e, spec: &e.s.Pools()[o.Number], queue: o.Queue()}
	p.path = p.spec.Path
	p.bounds = p.exceeded()
	p.free()
	if e.job.GangState() >= gang.Growing {
		p.gang = schedule.RoomOfGang(e.s.Copy(), e.job)
	}
	p.yielding = p.yields()
	return p
}

// exceeded returns the bounds into which the work does not fit now.
func (p *queueForecast) exceeded() (all []bound) {
	add := func(by limitation, most, held *terms.Amounts) {
		for k, need := range p.Unit.Need {
			if need > 0 && need > most[k]-held[k] {
				all = append(all, bound{by: by, kind: terms.Kind(k), most: most[k], held: held[k], need: need})
			}
		}
	}
	held := &p.Pool.Allocated
	if p.Unit.Revocable {
		add(bySlack, &p.Pool.Entitlement.Slack, &held.Slack)
		return all
	}
	add(byEntitlement, &p.Pool.Entitlement.NonSlack, &held.NonSlack)
	if p.Unit.NonPreemptible {
		add(byReservation, &p.Pool.Firm, &held.NonPreemptible)
	}
	if p.Unit.Controller {
		add(byControllers, &p.Pool.ControllerLimit, &held.Controller)
	}
	return append(all, p.lowered()...)
}

// free finds out what less important work of the pool would give back, where that alone is not enough.
func (p *queueForecast) free() {
	freed := terms.Amounts{}
	if len(p.bounds) > 0 && p.bounds[0].by == byEntitlement {
		in := p.Contest()
		for i := range in.Victims {
			own := in.Victims[i].Pool == in.Pool && in.Victims[i].Slot.Job != p.e.job.ID && !in.Victims[i].Revocable
			for k := 0; own && in.Victims[i].Priority < in.Priority && k < len(freed); k++ {
				freed[k] += in.Victims[i].Need[k]
			}
		}
	}
	for i := range p.bounds {
		if b := &p.bounds[i]; b.by == byEntitlement && freed[b.kind] < b.missing() {
			b.freed = freed[b.kind]
		}
	}
}

// lowered returns what leaves less than the pool is entitled to: limits of pools above, or static reservations.
func (p *queueForecast) lowered() (all []bound) {
	limits := admission.AncestorLimitsOf(p.e.s, entitle.Entitlements(entitle.Of(p.e.s)), nil)
	above, _, left, short := limits.Short(p.Number, &p.Unit.Need)
	if !short {
		return nil
	}
	for k, need := range p.Unit.Need {
		if need > left[k] && need <= p.Pool.Entitlement.NonSlack[k]-p.Pool.Allocated.NonSlack[k] {
			b := bound{by: byStatic, kind: terms.Kind(k), most: max(left[k], 0), need: need}
			if above != pool.Root {
				spec := &p.e.s.Pools()[above]
				b.by, b.most, b.above = byAncestorLimit, spec.Quotas[k].Limit, spec.Path
				b.held = b.most - left[k]
			}
			all = append(all, b)
		}
	}
	return all
}

// missing is how much more the pool would have to allow.
func (b *bound) missing() int64 { return b.need - (b.most - b.held) }

func (p *queueForecast) bound(b *bound) string {
	most, held, need := wording.Amount(b.kind, b.most), wording.Amount(b.kind, b.held), wording.Amount(b.kind, b.need)
	switch b.by {
	case bySlack:
		return fmt.Sprintf("revocable work of pool %s may hold %s now and holds %s: %s more is needed", p.path, most, held,
			need)
	case byReservation:
		if p.spec.Quotas[b.kind].Reservation == 0 {
			return fmt.Sprintf("pool %s reserves no %s, and what is not preemptible may hold %s of what no pool reserves and holds %s: %s more is needed",
				p.path, b.kind, most, held, need)
		}
		return fmt.Sprintf("pool %s reserves %s, and what is not preemptible holds %s of that: %s more is needed", p.path,
			most, held, need)
	case byControllers:
		return fmt.Sprintf("controllers of pool %s may hold %s and hold %s: %s more is needed", p.path, most, held, need)
	case byAncestorLimit:
		return fmt.Sprintf("the pools below %s may hold %s together and hold %s: another has to give back %s", b.above, most,
			held,
			wording.Amount(b.kind, b.missing()))
	case byStatic:
		return fmt.Sprintf("static reservations of other pools leave %s: another has to give back %s", most,
			wording.Amount(b.kind, b.missing()))
	}
	return fmt.Sprintf("pool %s is entitled to %s and holds %s: %s more is needed", p.path, most, held, need) +
		b.given()
}

// given says how much of it less important work of the pool would give back.
func (b *bound) given() (text string) {
	if b.freed > 0 {
		text = ", of which less important work of the pool would give back " + wording.Amount(b.kind, b.freed)
	}
	return text
}

// reason says how the pool keeps the work waiting, "" if it does not.
func (p *queueForecast) reason() string {
	switch {
	case p == nil:
	case len(p.bounds) > 0:
		return "waits for its pool: " + p.bound(&p.bounds[len(p.bounds)-1])
	case !p.queue.Room:
		if first, kinds := p.kept(); first != nil {
			return fmt.Sprintf("waits for its turn: what pool %s has left of %s is kept for %s", p.path, wording.Kinds(kinds),
				first.Name())
		}
		return fmt.Sprintf("waits for its turn in pool %s", p.path)
	}
	return ""
}

// kept returns the first job for which the pool keeps what the work lacks, and the kinds of that; nil if something else
// of the pool is short, or nothing.
func (p *queueForecast) kept() (*workload.Job, []terms.Kind) {
	if len(p.bounds) > 0 || p.queue.Room {
		return nil, nil
	}
	for i := range p.queue.First {
		first := &p.queue.First[i]
		if kinds := wording.Common(first.Needs, p.queue.Short); len(kinds) > 0 {
			return p.e.s.Job(first.Job), kinds
		}
	}
	return nil, nil
}

func (p *queueForecast) name(id terms.JobID) terms.JobName { return p.e.s.Job(id).Name() }

// details say how the pool stands, the place in its queue, and what of the gang would fit, but for what is said
// already.
func (p *queueForecast) details(said string) []string {
	if p == nil {
		return nil
	}
	var all []string
	if len(p.e.s.Pools()) > 1 || said == p.reason() {
		all = p.uses(said)
		for i := range p.bounds {
			if b := &p.bounds[i]; b.by != byEntitlement && b.by != bySlack {
				all = append(all, p.bound(b))
			}
		}
		if len(p.bounds) > 0 && p.bounds[0].by <= bySlack {
			all = append(all, fmt.Sprintf("how the entitlement came about: starling pool explain %s", p.path))
		}
	}
	all = append(all, p.position()...)
	if p.e.job.HasGang() {
		all = append(all, p.together())
	}
	return slices.DeleteFunc(all, func(line string) bool { return line == "" || strings.HasSuffix(said, line) })
}

// uses says of each kind that is needed how the pool stands, but for what is said already.
func (p *queueForecast) uses(said string) (all []string) {
	pools := explanation.Of(p.e.s)
	for k, need := range p.Unit.Need {
		if need > 0 {
			all = append(all, p.use(pools, terms.Kind(k), said))
		}
	}
	return all
}

// use is uses for one kind.
func (p *queueForecast) use(pools *explanation.Pools, kind terms.Kind, said string) string {
	quota := &p.spec.Quotas[kind]
	u := pools.Use(p.Number, kind)
	line := fmt.Sprintf("pool %s is entitled to %s%s and holds %s", p.path, wording.Amount(kind, u.Entitled),
		whole(kind, u.Entitled), wording.Amount(kind, u.Held))
	if u.Borrowed > 0 {
		line += fmt.Sprintf(", %s of it borrowed", wording.Amount(kind, u.Borrowed))
	}
	if quota.Reservation > 0 {
		line += ", reserves " + wording.Amount(kind, quota.Reservation)
	}
	if quota.Limit != terms.Unlimited {
		line += ", may have at most " + wording.Amount(kind, quota.Limit)
	}
	if p.Unit.Revocable {
		line += fmt.Sprintf("; its revocable work may hold %s and holds %s", wording.Amount(kind, u.SlackEntitled),
			wording.Amount(kind, u.SlackHeld))
	}
	for i := range p.bounds {
		if b := &p.bounds[i]; b.kind == kind && (b.by == byEntitlement || b.by == bySlack) &&
			!strings.HasSuffix(said, p.bound(b)) {
			line += fmt.Sprintf(": %s more is needed%s", wording.Amount(kind, b.need), b.given())
		}
	}
	return line
}

// whole says how many virtual peers there are of what does not divide.
func whole(k terms.Kind, value int64) string {
	if k != terms.VirtualPeers || value%int64(terms.WholeDevice) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d whole ones)", value/int64(terms.WholeDevice))
}

// position says who waits before the work in its pool, and why.
func (p *queueForecast) position() []string {
	if p.queue.Jobs == 1 {
		return nil
	}
	before := p.queue.Before
	line := fmt.Sprintf("%s of %d jobs that wait in pool %s", wording.Ordinal(len(before)+1), p.queue.Jobs, p.path)
	var names []string
	for _, id := range before[:min(len(before), wording.Most)] {
		names = append(names, fmt.Sprintf("%s (%s)", p.name(id), p.precedes(id)))
	}
	if len(names) > 0 {
		line += "; before it: " + strings.Join(names, ", ")
	}
	if rest := len(before) - len(names); rest > 0 {
		line += fmt.Sprintf(", %d more", rest)
	}
	all := []string{line}
	for i := range p.queue.First {
		first := &p.queue.First[i]
		if kinds := wording.Common(first.Lacks, p.lacks()); len(kinds) > 0 {
			all = append(all, fmt.Sprintf("what comes free of %s in the pool is kept for %s first", wording.Kinds(kinds),
				p.name(first.Job)))
		}
	}
	return all
}

// lacks returns the kinds of which the pool has too little for the work.
func (p *queueForecast) lacks() (kinds []terms.Kind) {
	for i := range p.bounds {
		kinds = append(kinds, p.bounds[i].kind)
	}
	return kinds
}

// precedes says why a job has its turn before this one.
func (p *queueForecast) precedes(id terms.JobID) string {
	other, mine := p.e.s.Job(id), p.e.job
	switch {
	case mine.Spec.Revocable && !other.Spec.Revocable:
		return "it is not revocable"
	case other.GangState() == gang.Broken && mine.GangState() != gang.Broken:
		return "its gang lost members"
	case other.Spec.Priority > mine.Spec.Priority:
		return fmt.Sprintf("priority %d", other.Spec.Priority)
	}
	return "older"
}

// gathers tells whether the nodes have room for a part of its gang alone.
func (p *queueForecast) gathers() bool { return p != nil && p.gang.Fit < p.gang.Members }

// together says how many of those that must run together would have nodes now.
func (p *queueForecast) together() string {
	g := &p.gang
	switch {
	case g.Members > 0 && g.Attribute != "" && g.Value != "":
		return fmt.Sprintf("%d must run together in one %s, and %s has room for %d of them now", g.Members, g.Attribute,
			g.Value, g.Fit)
	case g.Members > 0 && g.Attribute != "":
		return fmt.Sprintf("%d must run together in one %s, and no node is in one", g.Members, g.Attribute)
	case g.Members > 0:
		return fmt.Sprintf("%d must run together, and nodes have room for %d of them now", g.Members, g.Fit)
	case p.e.job.GangState() == gang.Broken:
		return "its gang runs and lost members, which come before all else in the pool"
	}
	return ""
}
