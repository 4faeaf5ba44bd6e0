package preempt

import (
	"cmp"
	"slices"

	"starling/cluster"
)

// Choose returns who gives way so that what is wanted can run, and false if nothing lets it run. If it fits as it is,
// nobody does.
func Choose(in *Input) (Plan, bool) {
	c := newChoice(in)
	for _, want := range c.hardestFirst() {
		left := min(in.Wants[want].Count, c.affordable(want))
		if left < in.Wants[want].Count && !in.Partial {
			return Plan{}, false
		}
		for _, c.breaks = range [...]bool{false, true} {
			if left > 0 {
				left -= c.seat(want, left)
			}
		}
		if left > 0 && !in.Partial {
			return Plan{}, false
		}
	}
	c.spare()
	plan := c.plan()
	return plan, len(plan.Seats) > 0
}

// plan says what was chosen.
func (c *choice) plan() (p Plan) {
	c.sort(c.singles)
	slices.SortStableFunc(c.broken, c.compareGangs)
	for _, i := range c.singles {
		p.Victims = append(p.Victims, Chosen{Victim: int(i), Rule: c.rules[i]})
	}
	for _, id := range c.broken {
		for _, i := range c.gangs[id].members {
			p.Victims = append(p.Victims, Chosen{Victim: int(i), Rule: c.rules[i]})
		}
	}
	slices.SortStableFunc(c.touched, func(a, b int32) int { return cmp.Compare(c.nodes[a].index, c.nodes[b].index) })
	for want := range c.in.Wants {
		for _, at := range c.touched {
			if n := &c.nodes[at]; n.seats[want] > 0 {
				p.Seats = append(p.Seats, Seat{Want: want, Node: n.index, Count: n.seats[want]})
			}
		}
	}
	return p
}

// choice is what was chosen so far, and what is left to choose from.
type choice struct {
	in *Input
	// wanted are the kinds of which something is wanted.
	wanted [cluster.AmountCount]bool
	// room and over are what is left of those of the input.
	room cluster.Amounts
	over []cluster.Amounts
	// rules allow to end the victims, 0 does not. Gone are those that have been chosen, singly or with their gang.
	rules []Rule
	gone  []bool
	gangs []gang
	nodes []node
	// at is the position of each node by its index, from 1; sites are the positions of the victims' nodes, -1 for none.
	at    []int32
	sites []int32
	// order has the victims of each node one after the other.
	order []int32
	// singles and broken are the victims and the gangs that were chosen, in this order.
	singles, broken []int32
	// own are the victims that make room in the pool, least valuable first; next is where to look for one that has
	// something of a kind.
	own  []int32
	next [cluster.AmountCount]int
	// breaks tells that gangs may be broken now.
	breaks bool
	// queues are the nodes that may be taken for the next instance: all, and those where only the pool's own victims go.
	// Split tells that the second one is in use.
	queues [2]queue
	split  bool
	// touched are the nodes that have to do with the plan.
	touched []int32
	offer   offer
	spares  spares
}

// node is a machine while it is decided about.
type node struct {
	index cluster.NodeIndex
	// free is what it has left if the chosen end and what has a seat runs.
	free cluster.Amounts
	// first and count tell where its victims stand in the order.
	first, count int32
	sorted       bool
	// taken tells that somebody has or had a seat here or was chosen here; rank is its place among those.
	taken bool
	rank  int32
	// seats and limits are by want.
	seats  []uint32
	limits []uint32
}

// gang is a gang while it is decided about.
type gang struct {
	// members are in their order once it has been broken.
	members []int32
	surplus []uint32
	worth   value
	// need is what comes free if it breaks.
	need   cluster.Amounts
	broken bool
	// along are the members that went because it broke.
	along []int32
}

func newChoice(in *Input) *choice {
	c := &choice{
		in: in, room: in.Room, over: slices.Clone(in.Over), rules: make([]Rule, len(in.Victims)), gone: make([]bool, len(in.Victims)),
		gangs: make([]gang, len(in.Gangs)), nodes: make([]node, len(in.Nodes)), sites: make([]int32, len(in.Victims)),
	}
	for i := range in.Wants {
		for k, need := range in.Wants[i].Need {
			c.wanted[k] = c.wanted[k] || need > 0
		}
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		c.nodes[i] = node{index: n.Index, free: n.Free}
		if missing := int(n.Index) + 1 - len(c.at); missing > 0 {
			c.at = append(c.at, make([]int32, missing)...)
		}
		c.at[n.Index] = int32(i) + 1
	}
	for i := range in.Gangs {
		c.gangs[i].surplus = slices.Clone(in.Gangs[i].Surplus)
	}
	c.readGangs()
	c.readVictims()
	return c
}

// readGangs sums up the gangs: a gang is worth as much as the most valuable of its members.
func (c *choice) readGangs() {
	if len(c.gangs) == 0 {
		return
	}
	for i := range c.in.Victims {
		v := &c.in.Victims[i]
		if v.Gang == NoGang {
			continue
		}
		g := &c.gangs[v.Gang]
		worth := valueOf(v)
		worth.rank |= unbroken
		if len(g.members) == 0 || g.worth.compare(&worth) < 0 {
			g.worth = worth
		}
		g.members = append(g.members, int32(i))
		add(&g.need, &v.Need)
	}
}

// readVictims finds the rule for each victim and lists those of each node that may be ended.
func (c *choice) readVictims() {
	for i := range c.in.Victims {
		v := &c.in.Victims[i]
		c.sites[i] = -1
		if c.rules[i] = c.rule(v); c.rules[i] == 0 {
			continue
		}
		if int(v.Node) < len(c.at) && c.at[v.Node] > 0 {
			c.sites[i] = c.at[v.Node] - 1
			c.nodes[c.sites[i]].count++
		}
	}
	first := int32(0)
	for i := range c.nodes {
		n := &c.nodes[i]
		n.first = first
		first += n.count
		n.count = 0
	}
	c.order = make([]int32, first)
	for i, site := range c.sites {
		if site >= 0 {
			n := &c.nodes[site]
			c.order[n.first+n.count] = int32(i)
			n.count++
		}
	}
}

// rule returns what allows to end a victim, now or at all.
func (c *choice) rule(v *Victim) Rule {
	switch {
	case v.Revocable && !c.in.Revocable:
		return ByRevocable
	case v.Revocable != c.in.Revocable:
		return 0
	case v.Pool == c.in.Pool:
		if v.Priority < c.in.Priority {
			return ByPriority
		}
		return 0
	case c.exceeds(v.Pool, &v.Need) || v.Gang != NoGang && c.exceeds(v.Pool, &c.gangs[v.Gang].need):
		return ByEntitlement
	}
	return 0
}

// exceeds tells whether a pool has something left that it is not entitled to, of a kind that is wanted and is part of an
// amount.
func (c *choice) exceeds(pool int, need *cluster.Amounts) bool {
	for k, over := range c.over[pool] {
		if over > 0 && need[k] > 0 && c.wanted[k] {
			return true
		}
	}
	return false
}

// hardestFirst returns the wants, those first that take the most of what there may be: small ones fit beside big ones.
func (c *choice) hardestFirst() []int {
	if len(c.in.Wants) == 1 {
		return []int{0}
	}
	var total cluster.Amounts
	for i := range c.nodes {
		for k, free := range c.nodes[i].free {
			total[k] += max(free, 0)
		}
	}
	for i := range c.in.Victims {
		if c.rules[i] != 0 {
			add(&total, &c.in.Victims[i].Need)
		}
	}
	wants, weights := make([]int, len(c.in.Wants)), make([]int64, len(c.in.Wants))
	for i := range wants {
		wants[i] = i
		for k, need := range c.in.Wants[i].Need {
			weights[i] = max(weights[i], need/(total[k]>>20+1))
		}
	}
	slices.SortStableFunc(wants, func(a, b int) int { return int(min(max(weights[b]-weights[a], -1), 1)) })
	return wants
}

// affordable returns how many instances the pool may hold if all victims of its own go.
func (c *choice) affordable(want int) uint32 {
	need, count := &c.in.Wants[want].Need, c.in.Wants[want].Count
	if !c.exhausted(need, int64(count)) {
		return count
	}
	room := c.room
	for i := range c.in.Victims {
		if c.rules[i] == ByPriority && !c.gone[i] {
			add(&room, &c.in.Victims[i].Need)
		}
	}
	return times(need, &room, count)
}

// times returns how often a need fits into an amount, at most most, as far as the kinds go that are needed.
func times(need, into *cluster.Amounts, most uint32) uint32 {
	count := int64(most)
	for k := range need {
		if need[k] > 0 {
			count = min(count, into[k]/need[k])
		}
	}
	return uint32(max(count, 0))
}

// exhausted tells whether the pool is out of room for so many instances more, in a kind that they need.
func (c *choice) exhausted(need *cluster.Amounts, count int64) bool {
	for k := range need {
		if need[k] > 0 && c.room[k] < need[k]*count {
			return true
		}
	}
	return false
}

// mayGo tells whether a victim may be ended by itself, as things are.
func (c *choice) mayGo(i int32) bool {
	v := &c.in.Victims[i]
	return !c.gone[i] && (v.Gang == NoGang || c.surplus(v) > 0) && (c.rules[i] != ByEntitlement || c.exceeds(v.Pool, &v.Need))
}

// surplus returns how many instances of a victim's task may go before its gang breaks.
func (c *choice) surplus(v *Victim) uint32 {
	g := &c.gangs[v.Gang]
	if g.broken || int(v.Slot.Task) >= len(g.surplus) {
		return 0
	}
	return g.surplus[v.Slot.Task]
}

// mayBreak tells whether a gang may be broken, as things are.
func (c *choice) mayBreak(id int32) bool {
	g := &c.gangs[id]
	first := g.members[0]
	return !g.broken && c.rules[first] != 0 && (c.rules[first] != ByEntitlement || c.exceeds(c.in.Victims[first].Pool, &g.need))
}

// spend notes what a victim takes of what limits the choice; refund takes it back.
func (c *choice) spend(i int32) {
	v := &c.in.Victims[i]
	if c.rules[i] == ByEntitlement {
		subtract(&c.over[v.Pool], &v.Need)
	}
	if v.Gang != NoGang {
		g := &c.gangs[v.Gang]
		g.surplus[v.Slot.Task]--
		subtract(&g.need, &v.Need)
	}
}

func (c *choice) refund(i int32) {
	v := &c.in.Victims[i]
	if c.rules[i] == ByEntitlement {
		add(&c.over[v.Pool], &v.Need)
	}
	if v.Gang != NoGang {
		g := &c.gangs[v.Gang]
		g.surplus[v.Slot.Task]++
		add(&g.need, &v.Need)
	}
}

func (c *choice) spendGang(id int32) {
	if g := &c.gangs[id]; c.rules[g.members[0]] == ByEntitlement {
		subtract(&c.over[c.in.Victims[g.members[0]].Pool], &g.need)
	}
}

func (c *choice) refundGang(id int32) {
	if g := &c.gangs[id]; c.rules[g.members[0]] == ByEntitlement {
		add(&c.over[c.in.Victims[g.members[0]].Pool], &g.need)
	}
}

// end chooses a victim by itself; keep takes it back.
func (c *choice) end(i int32) {
	c.spend(i)
	c.vacate(i)
}

func (c *choice) keep(i int32) {
	c.refund(i)
	c.occupy(i)
}

// vacate makes a victim's room free; occupy takes it back.
func (c *choice) vacate(i int32) {
	v := &c.in.Victims[i]
	c.gone[i] = true
	if c.rules[i] == ByPriority {
		add(&c.room, &v.Need)
	}
	if c.sites[i] >= 0 {
		n := c.touch(c.sites[i])
		c.spares.leave(c, n)
		add(&n.free, &v.Need)
		c.spares.enter(c, n)
	}
}

func (c *choice) occupy(i int32) {
	v := &c.in.Victims[i]
	c.gone[i] = false
	if c.rules[i] == ByPriority {
		subtract(&c.room, &v.Need)
	}
	if c.sites[i] >= 0 {
		n := c.touch(c.sites[i])
		c.spares.leave(c, n)
		subtract(&n.free, &v.Need)
		c.spares.enter(c, n)
	}
}

// breakUp ends all members of a gang that are left; mend takes it back.
func (c *choice) breakUp(id int32) {
	g := &c.gangs[id]
	c.spendGang(id)
	if len(g.along) == 0 {
		c.sort(g.members)
	}
	g.broken, g.along = true, g.along[:0]
	for _, i := range g.members {
		if !c.gone[i] {
			c.vacate(i)
			g.along = append(g.along, i)
		}
	}
}

func (c *choice) mend(id int32) {
	c.refundGang(id)
	g := &c.gangs[id]
	g.broken = false
	for _, i := range g.along {
		c.occupy(i)
	}
}
