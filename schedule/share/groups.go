package share

import (
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/fingerprint"
)

// NodeGroups is where the virtual peers are, for a pool to whose jobs that matters: one that has tasks which run on
// some machines only, or a job of which each copy runs on one machine. Nodes are grouped by which tasks they can run,
// or each is a group.
type NodeGroups struct {
	s    *cluster.State
	jobs []terms.JobID
	// each tells that each node is a group of its own.
	each bool
	// asks are the requirements of tasks, each once.
	asks []ask
	*ground
}

// ground is the nodes in their groups.
type ground struct {
	// offers is after how many changes of what nodes offer they were grouped; crowded tells that one has more work than
	// it offers peers for, so that the groups change with that, too.
	offers  uint64
	crowded bool
	// groups are what the pool divides; of tells the group of each node, none for one without peers.
	groups []Group
	of     []int
	// all is how many peers they have.
	all Peers
	// nodes are the nodes of the groups, where each is one.
	nodes []facts.NodeIndex
	// sum is the fingerprint of the groups, and of what their nodes have where each is one.
	sum uint64
}

// ask is what a task requires of a machine. fits tells whether a node has that.
type ask struct {
	spec *terms.Task
	fits func(facts.NodeIndex) bool
}

// Fits returns what tells whether a node, as such, can run a task.
type Fits func(facts.TaskKey) func(facts.NodeIndex) bool

// NewNodeGroups returns where the peers are, nil if that does not matter to the jobs of the pool. What was returned
// last for the pool in that value, which may be nil, saves grouping the nodes again if nothing has changed for that.
func NewNodeGroups(s *cluster.State, jobs []terms.JobID, fits Fits, last *NodeGroups) *NodeGroups {
	g := &NodeGroups{s: s, jobs: jobs}
	for _, id := range jobs {
		j := s.Job(id)
		g.each = g.each || j.Spec.TaskScheduler == terms.TaskColocated
		for i := range j.Spec.Tasks {
			if t := &j.Spec.Tasks[i]; asks(t) && g.ask(t) == none {
				g.asks = append(g.asks, ask{t, fits(facts.KeyOf(id, j.TaskIndex(t.Name)))})
			}
		}
	}
	if !g.each && len(g.asks) == 0 {
		return nil
	}
	if last != nil && !last.crowded && last.offers == s.OfferChanges() && last.each == g.each &&
		slices.EqualFunc(last.asks, g.asks, func(a, b ask) bool { return a.same(b.spec) }) {
		g.ground = last.ground
	} else {
		g.ground = &ground{offers: s.OfferChanges()}
		g.group()
		if g.sum = sumOf(0, g.groups); g.each {
			g.sum = g.capacities(g.sum)
		}
	}
	for i := range g.asks {
		g.asks[i].fits = nil // it is not needed any more, and refers to the value
	}
	return g
}

// asks tells whether a task requires anything of a machine beside room.
func asks(t *terms.Task) bool {
	return len(t.Devices) > 1 || slices.ContainsFunc(t.Constraints, lasting)
}

// lasting tells whether a constraint is about the machine itself, and holds for ever.
func lasting(c constraint.Constraint) bool { return !c.Soft && !c.Social() }

// ask returns the number of what a task requires, none if nothing.
func (g *NodeGroups) ask(t *terms.Task) int {
	if g == nil || !asks(t) {
		return none
	}
	return slices.IndexFunc(g.asks, func(a ask) bool { return a.same(t) })
}

// same tells whether a task requires the same.
func (a *ask) same(t *terms.Task) bool {
	return slices.EqualFunc(a.spec.Constraints, t.Constraints, constraint.Same) &&
		slices.EqualFunc(a.spec.Devices, t.Devices, terms.DeviceRequest.Equal)
}

// group groups the nodes. Those of a class are alike, unless a task asks for a node by its name or for several
// devices.
func (g *NodeGroups) group() {
	named := slices.ContainsFunc(g.asks, func(a ask) bool {
		return len(a.spec.Devices) > 1 ||
			slices.ContainsFunc(a.spec.Constraints,
				func(c constraint.Constraint) bool { return c.Mentions(terms.NodeAttribute) })
	})
	tags, number := map[uint32][]string{}, map[uint64]int{}
	g.of = make([]int, g.s.Nodes())
	for n := range facts.NodeIndex(g.s.Nodes()) {
		node := g.s.Node(n)
		g.s.Visit(1)
		g.of[n] = none
		peers := g.peers(node)
		if peers == 0 {
			continue
		}
		own, known := tags[node.Class]
		if !known || named {
			own = g.tags(n)
			tags[node.Class] = own
		}
		at := len(g.groups)
		if !g.each {
			key := fingerprint.Text(0, own...)
			if first, known := number[key]; known {
				at = first
			}
			number[key] = at
		}
		if at == len(g.groups) {
			g.groups = append(g.groups, Group{Machine: at, Tags: own})
			g.nodes = append(g.nodes, n)
		}
		g.groups[at].Peers += peers
		g.all += peers
		g.of[n] = at
	}
}

// tags tells which requirements a node fits.
func (g *NodeGroups) tags(n facts.NodeIndex) (tags []string) {
	for i := range g.asks {
		if g.asks[i].fits(n) {
			tags = append(tags, strconv.Itoa(i))
		}
	}
	return tags
}

// peers returns how many peers of a node the pool may count on: those that it offers if it takes work, and all that
// work for the pool.
func (g *NodeGroups) peers(node *cluster.Node) Peers {
	if node.Offer == nil {
		return 0
	}
	offered := 0
	if g.s.Eligible(node.Index) {
		offered = int(node.DeviceOf(terms.VirtualPeers.String()).Count)
	}
	if len(node.Held) <= offered {
		return Peers(offered)
	}
	g.crowded = true
	g.s.Visit(len(node.Held))
	count := Peers(0)
	for _, r := range node.Held {
		if slot, ok := g.s.SlotAt(r); ok && slot.Phase != facts.Stopping && g.runs(r, &slot) {
			count++
		}
	}
	return max(count, Peers(offered))
}

// runs tells whether a virtual peer of the pool runs a slot.
func (g *NodeGroups) runs(r facts.SlotRef, slot *facts.Slot) bool {
	_, own := slices.BinarySearch(g.jobs, r.Job)
	return own && slot.Phase.Holds() && g.s.Job(r.Job).SpecOf(slot.Version).Shares()
}

// Of returns the group of a node, below 0 for one without peers.
func (g *NodeGroups) Of(n facts.NodeIndex) int { return g.of[n] }

// Each tells whether each node is a group of its own.
func (g *NodeGroups) Each() bool { return g.each }

// First returns the first node of a group.
func (g *NodeGroups) First(group int) facts.NodeIndex { return g.nodes[group] }

// Groups returns how many groups there are.
func (g *NodeGroups) Groups() int { return len(g.groups) }

// fingerprint tells node groups apart, as far as the counts depend on them beside the groups.
func (g *NodeGroups) fingerprint() (h uint64) {
	if !g.each {
		return 0
	}
	for _, id := range g.jobs {
		h = fingerprint.Mix(h, uint64(g.s.Job(id).Version))
	}
	return g.capacities(h)
}

// capacities adds what the nodes have, where each is a group.
func (g *NodeGroups) capacities(h uint64) uint64 {
	for _, n := range g.nodes {
		for _, amount := range g.s.Node(n).Offer.Capacity {
			h = fingerprint.Mix(h, uint64(amount))
		}
	}
	return h
}

// sumOf adds groups to a fingerprint.
func sumOf(h uint64, groups []Group) uint64 {
	for _, g := range groups {
		h = fingerprint.Mix(h, uint64(g.Peers))
		if len(g.Tags) > 0 {
			h = fingerprint.Mix(h, fingerprint.Text(0, g.Tags...))
		}
	}
	return h
}

// Bound bounds the copies of colocated jobs, unless they are, by what each machine holds of them if it runs nothing
// else.
func (g *NodeGroups) Bound(in *Input) {
	for i, id := range g.jobs {
		job, j, need := &in.Jobs[i], g.s.Job(id), terms.Resources{}
		if job.Scheduler != TaskColocated || job.Copies != nil {
			continue
		}
		for at, task := range j.Order() {
			if job.Tasks[at].State == Open {
				need = need.Plus(j.TaskSpecOf(task, j.Version).Resources)
			}
		}
		job.Copies = make([]Peers, len(g.groups))
		for m, n := range g.nodes {
			job.Copies[m] = Peers(need.Times(&g.s.Node(n).Offer.Capacity, uint32(g.groups[m].Peers)))
		}
	}
}

// Change is a number of peers of a group more or less for a task; Place has the number of the job, and the place of the
// task in its order.
type Change = Running

// Settle returns what is to come to which group, and to leave which, for the plan of an input to be met. What leaves
// follows from the counts alone. If nothing has to, what comes goes where other work leaves room; if there is
// no way, some are sent where it does not, and wait until it gives way.
func (g *NodeGroups) Settle(in *Input, plan *Plan) (come, leave []Change) {
	running, usable, bounded := g.running(), g.usable(), *in
	expected := g.expected(plan, running, usable)
	after := g.settleAll(in, plan, expected, usable)
	come, leave = beyond(after, running), beyond(running, after)
	bounded.Groups = slices.Clone(in.Groups)
	all := true
	for i := range bounded.Groups {
		all = all && usable[i] == bounded.Groups[i].Peers
		bounded.Groups[i].Peers = usable[i]
	}
	if all || len(come) == 0 || len(leave) > 0 {
		return come, leave
	}
	better := Settle(&bounded, plan, expected)
	if total(better) == plan.total() && len(beyond(running, better)) == 0 {
		come = beyond(better, running)
	}
	return come, nil
}

// settleAll settles with all peers, those first on which nothing else is: a group of which not all is usable is two,
// and the second comes behind all groups.
func (g *NodeGroups) settleAll(in *Input, plan *Plan, running []Running, usable []Peers) (after []Running) {
	parted, count := *in, len(in.Groups)
	parted.Groups = slices.Clone(in.Groups)
	// whole is the group that a second is of.
	var whole []int
	for i, group := range in.Groups {
		if rest := group.Peers - usable[i]; rest > 0 {
			parted.Groups[i].Peers, group.Peers = usable[i], rest
			parted.Groups, whole = append(parted.Groups, group), append(whole, i)
		}
	}
	at := map[presence]int{}
	for _, r := range Settle(&parted, plan, running) {
		if r.Group >= count {
			r.Group = whole[r.Group-count]
			if first, known := at[presence{r.Group, r.Place}]; known {
				after[first].Peers += r.Peers
				continue
			}
		}
		at[presence{r.Group, r.Place}] = len(after)
		after = append(after, r)
	}
	return after
}

// presence is a task on a group.
type presence struct {
	group int
	place Place
}

// beyond returns what the first has more than the second, in its order.
func beyond(first, second []Running) (all []Change) {
	count := map[presence]Peers{}
	for _, r := range second {
		count[presence{r.Group, r.Place}] += r.Peers
	}
	for _, r := range first {
		if more := r.Peers - count[presence{r.Group, r.Place}]; more > 0 {
			all = append(all, Change{r.Group, r.Place, more})
		}
	}
	return all
}

// total returns how many peers run.
func total(all []Running) (peers Peers) {
	for _, r := range all {
		peers += r.Peers
	}
	return peers
}

// running returns what runs of the jobs and was not told to stop, by task and then group.
func (g *NodeGroups) running() (all []Running) {
	at := make([]int, len(g.groups))
	for i, id := range g.jobs {
		for k, task := range g.s.Job(id).Order() {
			first := len(all)
			g.s.EachSlot(id, task, func(r facts.SlotRef, slot facts.Slot) bool {
				if g.s.Visit(1); slot.Phase == facts.Stopping || !g.runs(r, &slot) {
					return true
				}
				group := g.of[slot.Node]
				if group == none {
					return true
				}
				if at[group] < first || at[group] >= len(all) || all[at[group]].Group != group {
					at[group] = len(all)
					all = append(all, Running{Group: group, Place: Place{i, k}})
				}
				all[at[group]].Peers++
				return true
			})
		}
	}
	return all
}

// usable returns how many peers of each group work for the pool, or could now as far as other work leaves them room.
func (g *NodeGroups) usable() []Peers {
	usable, least := make([]Peers, len(g.groups)), g.least()
	kept := g.kept()
	for n, group := range g.of {
		node := g.s.Node(facts.NodeIndex(n))
		if group == none {
			continue
		}
		all := g.peers(node)
		if !g.s.Eligible(node.Index) {
			usable[group] += all
			continue
		}
		g.s.Visit(1 + len(node.Held))
		own, free := Peers(0), g.s.FreeAmounts(node.Index)
		for _, r := range node.Held {
			if slot, ok := g.s.SlotAt(r); ok && g.runs(r, &slot) {
				own++
			}
		}
		more := all
		for k, amount := range least {
			if amount > 0 {
				more = min(more, Peers(max(free[k]+kept[node.Index][k], 0)/amount))
			}
		}
		usable[group] += min(all, own+more)
	}
	return usable
}

// expected returns what runs, and that for which others leave a place, as if it ran there: otherwise it is sent
// elsewhere, the place is given up, and they left in vain. No task has more than the plan says by it, and no group more
// than is usable.
func (g *NodeGroups) expected(plan *Plan, running []Running, usable []Peers) (all []Running) {
	all = slices.Clip(running)
	taken := make([]Peers, len(g.groups))
	has := map[Place]Peers{}
	for _, r := range running {
		taken[r.Group] += r.Peers
		has[r.Place] += r.Peers
	}
	for i, id := range g.jobs {
		nomination, _ := g.s.NominationOf(id)
		if nomination.Backfill {
			continue
		}
		for _, seat := range nomination.Seats {
			group, place := g.of[seat.Node], Place{i, slices.Index(g.s.Job(id).Order(), seat.Task)}
			if group == none || place.Task == none {
				continue
			}
			count := min(Peers(seat.Count), plan.Peers[i][place.Task]-has[place], usable[group]-taken[group])
			if count > 0 {
				all = append(all, Running{group, place, count})
				taken[group] += count
				has[place] += count
			}
		}
	}
	return all
}

// kept returns what is kept for jobs of the pool.
func (g *NodeGroups) kept() map[facts.NodeIndex]terms.Amounts {
	kept := map[facts.NodeIndex]terms.Amounts{}
	for _, id := range g.jobs {
		nomination, _ := g.s.NominationOf(id)
		for _, seat := range nomination.Seats {
			sum := kept[seat.Node]
			for k, amount := range seat.Need {
				sum[k] += amount * int64(seat.Count)
			}
			kept[seat.Node] = sum
		}
	}
	return kept
}

// least returns the least of each kind that any task of the jobs takes.
func (g *NodeGroups) least() (least terms.Amounts) {
	for k := range least {
		least[k] = terms.Unlimited
	}
	for _, id := range g.jobs {
		for i := range g.s.Job(id).Spec.Tasks {
			for k, amount := range g.s.Job(id).Spec.Tasks[i].Amounts() {
				least[k] = min(least[k], amount)
			}
		}
	}
	return least
}
