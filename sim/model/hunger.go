package model

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/schedule/preempt"
	"starling/schedule/share"
	"starling/terms"
	"starling/terms/constraint"
)

// head is work that waits although its pool is entitled to room for it, or has less important work.
type head struct {
	job *Job
	// t is the task of which at most most instances may run, nil for the gang.
	t        *task
	most     uint32
	entitled bool
	// kept is what the pool keeps for work before it.
	kept terms.Amounts
}

// hungry notes that work waits for machines, or for room that less important work of its pool has.
func (p *turns) hungry(h head, g *share.Gang) {
	if p.admission == nil || p.underWay || g.Revocable || len(p.heads[p.number]) == int(p.m.limits.Preemptions) || h.seeksCompany(p.placing) {
		return
	}
	class := terms.ClassOf(g.Revocable, g.NonPreemptible, g.Controller)
	if !h.entitled && (p.questions == 0 || p.admission.Awaits(class) || !p.outranks(h.job) || !p.admission.FitsWithin(class, &g.Need)) {
		return
	}
	h.kept = p.admission.Kept()
	p.heads[p.number] = append(p.heads[p.number], h)
}

// refused returns work that is not admitted, as entitled to room if others below the limit of a pool above hold that.
func (p *turns) refused(h head, g *share.Gang) head {
	if p.admission != nil && p.admission.Entitled(g) > p.admission.Room(g) {
		h.entitled, h.most = true, min(h.most, p.admission.Entitled(g))
	}
	return h
}

// outranks tells whether anything less important runs in the pool of a job and could give way to it.
func (p *turns) outranks(j *Job) (found bool) {
	for _, other := range p.m.Jobs {
		spec := other.newest()
		if spec.Name.Pool() == j.newest().Name.Pool() && spec.Type != terms.Daemon && !spec.NonPreemptible() &&
			spec.Revocable == j.newest().Revocable && spec.Priority < j.newest().Priority {
			other.each(func(s *seat) { found = found || s.Phase.Holds() })
		}
	}
	return found
}

// feed lets others give way to those who wait, pool by pool, when the patience of the pool is over. Whether it is worth
// another try where nobody could give way last time, the fold knows. It returns false if there is more to do.
func (p *placing) feed() (finished bool) {
	m, plans := p.m, int(p.m.limits.Preemptions)
	finished = true
	for _, number := range m.byPatience() {
		path, patience := m.pools[number].Path, terms.Time(m.pools[number].PatienceMillis)
		was, waited := m.hungers[path]
		switch {
		case p.content(number):
			delete(m.hungers, path)
		case !waited && patience > 0:
			m.hungers[path] = cluster.Hunger{At: m.time + patience}
		case was.Failed && m.leaves(number, was):
		case was.At > m.time:
			m.hungers[path] = cluster.Hunger{At: was.At} // something is different, and the fold knows
		case plans == 0:
			finished = false
			m.hungers[path] = cluster.Hunger{At: was.At}
			if !waited {
				m.hungers[path] = cluster.Hunger{At: m.time}
			}
		default:
			m.hungers[path] = cluster.Hunger{At: m.time + max(patience, 1), Failed: true}
			if p.feedPool(number, &plans) {
				delete(m.hungers, path)
				finished = false
			}
		}
	}
	return finished
}

// byPatience returns the numbers of the pools, those first whose patience ends first.
func (m *Model) byPatience() (numbers []int) {
	for number := range m.pools {
		numbers = append(numbers, number)
	}
	slices.SortStableFunc(numbers, func(a, b int) int {
		return cmp.Compare(m.hungers[m.pools[a].Path].At, m.hungers[m.pools[b].Path].At)
	})
	return numbers
}

// leaves tells whether the fold leaves a pool as it is for whose work nobody could give way.
func (m *Model) leaves(number int, was cluster.Hunger) bool {
	now, waits := m.fold.HungerOf(number)
	return waits && now == was
}

// feedPool looks for who gives way to each of those that wait in a pool. For the first for whom nobody does nodes are kept
// as they empty by themselves.
func (p *placing) feedPool(number int, plans *int) (more bool) {
	p.shed(number)
	for i, h := range p.heads[number] {
		if *plans == 0 {
			return true
		}
		*plans--
		if c := p.m.claimsOf(h.job.ID); c != nil && !c.Patient {
			continue
		}
		if h.t == nil && p.lacksNodes(h.job) {
			continue
		}
		if p.giveWay(number, h) {
			more = i == int(p.m.limits.Preemptions)-1
			continue
		}
		patient := slices.ContainsFunc(p.m.claims, func(c claims) bool { return c.Patient && p.m.poolOf(c.job) == number })
		if h.entitled && !patient {
			p.keepEmptying(number, h)
		}
	}
	return more
}

// lacksNodes tells whether no nodes could have all that a gang lacks, or some of it waits for a particular one.
func (p *placing) lacksNodes(j *Job) bool {
	_, left := p.wanted(j)
	free, particular := 0, false
	for _, t := range j.tasks {
		waits, missing := len(t.waiting(false)), int(t.missing())
		free, particular = free+waits-missing, particular || waits < missing
	}
	return left > 0 || particular || free < int(j.missingAny())
}

// seeksCompany tells whether a part of what is wanted runs only where others do.
func (h *head) seeksCompany(p *placing) (found bool) {
	for _, t := range h.tasks(p) {
		for _, rule := range t.spec(0).Constraints {
			rule.EachLeaf(func(leaf *constraint.Constraint) { found = found || leaf.Label != "" && leaf.GainsByMore() })
		}
	}
	return found
}

// content tells whether nobody in a pool waits for others to give way.
func (p *placing) content(number int) bool {
	return len(p.heads[number]) == 0 && p.excess(number) == terms.Amounts{}
}

// excess returns what revocable work of a pool holds of its entitlement although other work of the pool needs that.
func (p *placing) excess(number int) (over terms.Amounts) {
	account := p.m.account(p.m.pools[number].Path)
	for k := range over {
		if account.Asking > account.AskingRevocable && k != int(terms.CPU) {
			over[k] = max(account.Held.Slack[k]-p.entitled[number].Slack[k], 0)
		}
	}
	return over
}

// shed tells that work to stop.
func (p *placing) shed(number int) {
	over, c := p.excess(number), p.m.look()
	var own []preempt.Victim
	var seats []*seat
	for i, v := range c.victims {
		if v.Pool == number && v.Revocable {
			own, seats = append(own, v), append(seats, c.seats[i])
		}
	}
	for _, j := range p.m.Jobs {
		if !j.newest().Revocable || j.newest().Type == terms.Daemon || p.m.poolNumber(j.newest().Name.Pool()) != number {
			continue
		}
		j.each(func(s *seat) {
			if s.Phase != cluster.Stopping {
				return
			}
			for k, amount := range amountsOf(s.spec()) {
				over[k] = max(over[k]-amount, 0)
			}
		})
	}
	var leaving []*seat
	for _, i := range preempt.Shed(own, over, terms.Amounts{}) {
		leaving = append(leaving, seats[i])
	}
	p.m.evict(leaving)
}

// evict tells seats to give way.
func (m *Model) evict(all []*seat) {
	for _, s := range besideFirst(all) {
		m.stop(s, cluster.ByPreemption)
	}
}

// poolOf returns the number of a job's pool, -1 of a daemon's: it belongs to its nodes.
func (m *Model) poolOf(id terms.JobID) int {
	for _, j := range m.Jobs {
		if j.ID == id && j.newest().Type != terms.Daemon {
			return m.poolNumber(j.newest().Name.Pool())
		}
	}
	return -1
}

// giveWay tells those to stop who have to give way to the head, and claims the room.
func (p *placing) giveWay(number int, h head) bool {
	kept := p.m.lift(h.job)
	c := p.m.look()
	in := p.input(number, h, c)
	plan, ok := p.inDomain(h, in, func(in *preempt.Input) (preempt.Plan, bool) { return p.fitting(h, c, in) })
	var room cluster.Claims
	for _, one := range plan.Seats {
		room.Seats = append(room.Seats, cluster.Claim{Node: one.Node})
	}
	if !ok || len(plan.Victims) == 0 && !p.m.awaits(room) {
		p.m.keep(h.job.ID, kept)
		return false
	}
	var leaving []cluster.SlotRef
	var all []*seat
	for _, v := range plan.Victims {
		leaving, all = append(leaving, in.Victims[v.Victim].Slot), append(all, c.seats[v.Victim])
	}
	p.claim(h, in, plan.Seats, cluster.Claims{Leaving: leaving})
	p.m.evict(all)
	return true
}

// fitting returns who gives way to a head so that it has its devices and ports as well.
func (p *placing) fitting(h head, c *candidates, in *preempt.Input) (plan preempt.Plan, ok bool) {
	for range 4 {
		if plan, ok = preempt.Choose(in); !ok {
			return plan, false
		}
		wrong := p.unfit(h, c, &plan)
		if len(wrong) == 0 {
			return plan, true
		}
		in.Nodes = slices.DeleteFunc(slices.Clone(in.Nodes), func(n preempt.Node) bool { return slices.Contains(wrong, n.Index) })
	}
	return plan, false
}

// inDomain chooses in each domain where a job may be, and takes that where the fewest give way.
func (p *placing) inDomain(h head, in *preempt.Input, choose func(*preempt.Input) (preempt.Plan, bool)) (best preempt.Plan, ok bool) {
	attribute := h.job.newest().Within
	if _, found := h.job.home(p.m); attribute == "" || found {
		return choose(in)
	}
	for _, value := range p.m.valuesOf(attribute) {
		one := *in
		one.Nodes = nil
		for _, n := range in.Nodes {
			if here, exists := p.m.Nodes[n.Index].attribute(attribute); exists && here == value {
				one.Nodes = append(one.Nodes, n)
			}
		}
		if plan, found := choose(&one); found && (!ok || len(plan.Victims) < len(best.Victims)) {
			best, ok = plan, true
		}
	}
	return best, ok
}

// unfit returns the nodes of a plan on which its seats would not do, taken one after the other: for want of devices and
// ports, or because they mind each other. Seats that want a particular node or version are looked at each by itself.
func (p *placing) unfit(h head, c *candidates, plan *preempt.Plan) (wrong []cluster.NodeIndex) {
	asks := func(t *task) bool {
		minds := slices.ContainsFunc(t.spec(0).Constraints, func(c constraint.Constraint) bool { return c.Social() })
		return len(t.spec(0).Devices)+len(t.spec(0).Ports) > 0 || minds
	}
	if !slices.ContainsFunc(h.tasks(p), asks) {
		return nil
	}
	rooms := make([]*room, len(p.m.Nodes))
	for i, n := range p.m.Nodes {
		taken := slices.ContainsFunc(plan.Seats, func(one preempt.Seat) bool { return one.Node == n.number })
		rooms[i] = p.m.roomWithout(n, func(s *seat) bool {
			goes := slices.ContainsFunc(plan.Victims, func(v preempt.Chosen) bool { return c.seats[v.Victim] == s })
			return goes || taken && s.Phase == cluster.Stopping
		})
	}
	waiting, fork := map[*task]int{}, p.spots.copy()
	for _, t := range h.tasks(p) {
		waiting[t] = len(t.waiting(false))
	}
	for _, one := range plan.Seats {
		t := h.tasks(p)[one.Want]
		for range one.Count {
			if fork.left(t, rooms[one.Node].node) == 0 || !p.imagine(rooms, t, rooms[one.Node], waiting[t] > 0) {
				wrong = append(wrong, one.Node)
				break
			}
			if waiting[t]--; waiting[t] >= 0 {
				fork.take(t, rooms[one.Node].node, 1)
			}
		}
	}
	return wrong
}

// imagine tells whether a node takes an instance of a task more, and if it waits for any node puts it there.
func (p *placing) imagine(rooms []*room, t *task, r *room, put bool) bool {
	spec := t.spec(0)
	q := search{t, spec, false}
	if !r.fits(spec) || spec.PerNodeMax > 0 && r.own[t] >= int(spec.PerNodeMax) ||
		!p.ruled(rooms, q, r, false) && !p.ruled(rooms, q, r, true) {
		return false
	}
	if put {
		// What is given to whom does not matter here.
		portNext, imagined := r.node.portNext, t.newSlot().main()
		imagined.Version = t.job.version()
		r.give(imagined)
		r.node.portNext = portNext
	}
	return true
}

// keepEmptying claims the nodes where the least has to end by itself.
func (p *placing) keepEmptying(number int, h head) {
	c := p.m.look()
	in := p.input(number, h, c)
	in.Revocable, in.Over, in.Gangs, in.Victims, in.Circle = false, nil, nil, c.ending, preempt.Circle{}
	for k := range in.Room {
		in.Room[k] = terms.Unlimited
	}
	if h.t != nil {
		in.Wants[0].Count = 1
	}
	if plan, ok := p.inDomain(h, in, preempt.Choose); ok && len(plan.Victims) > 0 {
		p.claim(h, in, plan.Seats, cluster.Claims{Patient: true})
	}
}

// claim keeps the seats of a plan for the job that it was made for.
func (p *placing) claim(h head, in *preempt.Input, seats []preempt.Seat, kept cluster.Claims) {
	for _, one := range seats {
		kept.Seats = append(kept.Seats, cluster.Claim{
			Task: h.tasks(p)[one.Want].number, Node: one.Node, Count: one.Count, Need: in.Wants[one.Want].Need,
		})
	}
	p.m.keep(h.job.ID, kept)
}

// tasks returns those of which instances are wanted.
func (h *head) tasks(p *placing) (all []*task) {
	if h.t != nil {
		return []*task{h.t}
	}
	counts, _ := p.wanted(h.job)
	for i, t := range h.job.tasks {
		if counts[i] > 0 {
			all = append(all, t)
		}
	}
	return all
}

// candidates are who could give way, with their seats, and where there is room.
type candidates struct {
	nodes           []preempt.Node
	victims, ending []preempt.Victim
	seats           []*seat
	gangs           []preempt.Gang
}

func (m *Model) look() *candidates {
	c := &candidates{}
	for _, n := range m.Nodes {
		if n.open() {
			c.nodes = append(c.nodes, preempt.Node{Index: n.number, Free: m.freeBy(n)})
		}
	}
	for _, j := range m.Jobs {
		spec, gang := j.newest(), preempt.NoGang
		if spec.Type == terms.Daemon {
			continue
		}
		j.each(func(s *seat) {
			stages := map[cluster.Phase]preempt.Stage{cluster.Delayed: preempt.Delayed, cluster.Assigned: preempt.Ordered, cluster.Running: preempt.Running}
			stage, gives := stages[s.Phase]
			if !gives {
				return
			}
			v := preempt.Victim{
				Slot: s.ref(), Node: s.Node, Need: amountsOf(s.spec()), Pool: m.poolNumber(spec.Name.Pool()), Revocable: spec.Revocable,
				Stage: stage, Priority: spec.Priority, Since: s.Since, Gang: preempt.NoGang,
			}
			if spec.Type == terms.Batch {
				ends := v
				ends.Revocable, ends.Stage, ends.Priority, ends.Since = true, preempt.Running, 0, -s.Since
				c.ending = append(c.ending, ends)
			}
			if spec.NonPreemptible() {
				return
			}
			if gang == preempt.NoGang && j.hasGang() {
				gang = len(c.gangs)
				c.gangs = append(c.gangs, preempt.Gang{Surplus: j.surplus()})
			}
			v.Gang = gang
			c.victims, c.seats = append(c.victims, v), append(c.seats, s)
		})
	}
	return c
}

// freeBy returns what a node has left when all have stopped that were told to, without what is kept for others.
func (m *Model) freeBy(n *Node) (free terms.Amounts) {
	free = n.offers()
	for _, s := range m.on(n) {
		for k, amount := range amountsOf(s.spec()) {
			if s.Phase != cluster.Stopping {
				free[k] -= amount
			}
		}
	}
	for k, amount := range m.kept(n) {
		free[k] -= amount
	}
	return free
}

// kept returns what of a node is kept for those that wait.
func (m *Model) kept(n *Node) (sum terms.Amounts) {
	for _, c := range m.claims {
		for _, one := range c.Seats {
			for k, amount := range one.Need {
				if one.Node == n.number {
					sum[k] += amount * int64(one.Count)
				}
			}
		}
	}
	return sum
}

func (j *Job) hasGang() bool {
	return j.newest().MinAvailable > 0 || slices.ContainsFunc(j.newest().Tasks, func(t terms.Task) bool { return t.MinAvailable > 0 })
}

// surplus returns how many of each task may go before the gang breaks.
func (j *Job) surplus() (all []uint32) {
	beyond := j.beyond()
	for _, t := range j.tasks {
		alive, done := t.members()
		needed := min(t.least(), alive+done)
		more := min(beyond, alive+done-needed)
		needed += more
		beyond -= more
		all = append(all, alive-min(alive, needed-min(needed, done)))
	}
	return all
}

// input returns what the choice of who gives way to a head depends on.
func (p *placing) input(number int, h head, c *candidates) *preempt.Input {
	m, spec := p.m, h.job.newest()
	in := &preempt.Input{
		Pool: number, Revocable: spec.Revocable, Priority: spec.Priority, Partial: h.t != nil,
		Nodes: c.nodes, Victims: c.victims, Gangs: c.gangs,
	}
	promised := m.promised(number, spec.Revocable)
	for i := range m.pools {
		over := terms.Amounts{}
		for k := range over {
			over[k] = -p.entitled[i].NonSlack[k]
			if spec.Revocable {
				over[k] = -p.entitled[i].Slack[k]
			}
		}
		for _, j := range m.Jobs {
			if j.newest().Type == terms.Daemon || j.newest().Revocable != spec.Revocable || m.poolOf(j.ID) != i {
				continue
			}
			j.each(func(s *seat) {
				if s.Phase.Holds() && s.Phase != cluster.Stopping {
					for k, amount := range amountsOf(s.spec()) {
						over[k] += amount
					}
				}
			})
		}
		for k := range over {
			if i == number {
				in.Room[k] = -over[k] - promised[k] - h.kept[k]
			}
			over[k] = max(over[k], 0)
		}
		in.Over = append(in.Over, over)
	}
	rooms := m.rooms()
	for _, t := range h.tasks(p) {
		count := h.most
		if h.t == nil {
			counts, _ := p.wanted(h.job)
			count = counts[t.number]
		}
		in.Wants = append(in.Wants, preempt.Want{Need: amountsOf(t.spec(0)), Count: count, Most: func(n cluster.NodeIndex) uint32 {
			return p.mostBy(rooms, t, rooms[n])
		}})
	}
	m.lower(in, h)
	return in
}

// promised returns what others of a pool and class wait for, to whom somebody gives way.
func (m *Model) promised(number int, revocable bool) (sum terms.Amounts) {
	for _, c := range m.claims {
		j := m.Jobs[slices.IndexFunc(m.Jobs, func(j *Job) bool { return j.ID == c.job })]
		if c.Patient || m.poolOf(c.job) != number || j.newest().Revocable != revocable {
			continue
		}
		for _, one := range c.Seats {
			for k, amount := range one.Need {
				sum[k] += amount * int64(one.Count)
			}
		}
	}
	return sum
}

// mostBy returns how many instances of a task a node may run by its rules, whatever room it has.
func (p *placing) mostBy(rooms []*room, t *task, r *room) uint32 {
	spec := t.spec(0)
	if !p.ruled(rooms, search{t, spec, false}, r, false) && !p.ruled(rooms, search{t, spec, false}, r, true) {
		return 0
	}
	most := r.node.has(spec, terms.InstancesMax)
	if spec.PerNodeMax > 0 {
		most = min(most, int64(spec.PerNodeMax)-int64(r.own[t]))
	}
	if slices.ContainsFunc(spec.Ports, func(q terms.PortRequest) bool { return q.Number != 0 }) {
		most = min(most, 1)
	}
	return uint32(max(min(most, int64(p.spots.left(t, r.node))), 0))
}
