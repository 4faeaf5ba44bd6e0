package schedule

import (
	"math/bits"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/preemptible"
	"starling/cluster/workload"
	"starling/schedule/admission"
	"starling/schedule/place"
	"starling/schedule/preempt"
	"starling/terms"
	"starling/terms/constraint"
)

// candidates are what could give way, and where there is room, as far as that was read: for all that look for it with
// one entry.
type candidates struct {
	s       *cluster.State
	nodes   []preempt.Node
	victims []preempt.Victim
	gangs   []preempt.Gang
	// lasting are victims that do not end by themselves, by number; fixed are instances that are none and do.
	lasting []bool
	fixed   []preempt.Victim
	// read are the pages of nodes that were read, numbers the jobs of the gangs.
	read    []bool
	numbers []terms.JobID
}

// look returns them.
func (p *pass) look() *candidates {
	if p.candidates == nil {
		p.candidates = &candidates{s: p.s, read: make([]bool, p.s.RoomPages())}
	}
	return p.candidates
}

// Pages returns the pages of nodes that were not read.
func (c *candidates) Pages() (pages []int) {
	for page, read := range c.read {
		if !read {
			pages = append(pages, page)
		}
	}
	return pages
}

// PageOf returns the page of a node.
func (c *candidates) PageOf(n facts.NodeIndex) int { return int(n) / cluster.NodesPerPage }

// EachLeast visits, for each pool, class and priority on a page, one before which none of them there goes.
func (c *candidates) EachLeast(page int, visit func(*preempt.Victim)) {
	c.s.Preemptible().EachLeast(page, func(class preemptible.Class, least preemptible.Least) {
		c.s.Visit(1)
		visit(&preempt.Victim{Slot: least.Slot, Pool: c.s.PoolAt(class.Pool), Revocable: class.Revocable, Stage: least.Stage,
			Priority: class.Priority, Since: least.Since})
	})
}

// EachFitting visits nodes of a page, among them all that have so much left.
func (c *candidates) EachFitting(page int, need *terms.Amounts, visit func(*preempt.Node)) {
	one := func(n facts.NodeIndex) {
		c.s.Visit(1)
		if c.s.Eligible(n) {
			visit(&preempt.Node{Index: n, Free: c.freeOn(n)})
		}
	}
	for kept := range terms.PurposeCount {
		c.s.Visit(1)
		nodes, loose := c.s.Fitting(page, kept, (*terms.Resources)(need[:terms.KindCount]))
		if loose {
			c.s.Tighten(page, kept)
		}
		for ; nodes != 0; nodes &= nodes - 1 {
			one(facts.NodeIndex(page*cluster.NodesPerPage + bits.TrailingZeros64(nodes)))
		}
	}
	c.s.Preemptible().EachStopping(page, one)
}

// freeOn returns what a node has left if all have stopped that were told to.
func (c *candidates) freeOn(n facts.NodeIndex) terms.Amounts {
	free, stopping := c.s.FreeAmounts(n), c.s.Preemptible().StoppingOn(n)
	free.Add(&stopping, 1)
	return free
}

// Read adds what is on a page.
func (c *candidates) Read(page int, in *preempt.Input) {
	before := len(c.nodes)
	c.readPage(page)
	in.Nodes, in.Victims, in.Gangs = append(in.Nodes, c.nodes[before:]...), c.victims, c.gangs
}

// all returns the candidates with everything read.
func (c *candidates) all() *candidates {
	for _, page := range c.Pages() {
		c.readPage(page)
	}
	return c
}

// revocable returns the candidates with all that is revocable of a pool.
func (c *candidates) revocable(pool int) *candidates {
	for _, page := range c.Pages() {
		found := false
		c.EachLeast(page, func(v *preempt.Victim) { found = found || v.Revocable && v.Pool == pool })
		if found {
			c.readPage(page)
		}
	}
	return c
}

func (c *candidates) readPage(page int) {
	c.read[page] = true
	first := facts.NodeIndex(page * cluster.NodesPerPage)
	for n := first; n < min(first+cluster.NodesPerPage, facts.NodeIndex(c.s.Nodes())); n++ {
		if c.s.Visit(1); c.s.Eligible(n) {
			c.nodes = append(c.nodes, preempt.Node{Index: n, Free: c.freeOn(n)})
		}
	}
	c.s.TightenPreemptible(page, func(j *workload.Job, r facts.SlotRef, slot *facts.Slot) {
		c.s.Visit(1)
		switch v, yields := victimOf(c.s, j, r, slot); {
		case !yields:
		case !j.Spec.NonPreemptible() && j.HasGang():
			c.readGang(j)
		case !j.Spec.NonPreemptible():
			c.add(j, v)
		case j.Spec.Type == terms.Batch:
			c.fixed = append(c.fixed, v)
		}
	})
}

func (c *candidates) add(j *workload.Job, v preempt.Victim) {
	c.victims, c.lasting = append(c.victims, v), append(c.lasting, j.Spec.Type != terms.Batch)
}

// readGang adds all that runs of a job with a gang, once.
func (c *candidates) readGang(j *workload.Job) {
	if slices.Contains(c.numbers, j.ID) {
		return
	}
	number := len(c.gangs)
	c.gangs, c.numbers = append(c.gangs, gangOf(j)), append(c.numbers, j.ID)
	for task := range j.Tasks {
		c.s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
			if c.s.Visit(1); slot.Phase.Holds() {
				if v, yields := victimOf(c.s, j, r, &slot); yields {
					v.Gang = number
					c.add(j, v)
				}
			}
			return true
		})
	}
}

// victimOf returns an instance as one that could give way; ok is false if it could not, however preemptible its job is.
func victimOf(s *cluster.State, j *workload.Job, r facts.SlotRef, slot *facts.Slot) (v preempt.Victim, ok bool) {
	stage, yields := preemptible.StageOf(slot.Phase)
	v = preempt.Victim{
		Slot: r, Node: slot.Node, Need: j.TaskSpecOf(int(r.Task), slot.Version).Amounts(), Pool: s.PoolOf(j),
		Revocable: j.Spec.Revocable, Stage: stage, Priority: j.Spec.Priority, Since: slot.Since, Gang: preempt.NoGang,
	}
	return v, yields && v.Pool >= 0
}

// ending returns all instances that end by themselves, as if all had to give way.
func (c *candidates) ending() []preempt.Victim {
	all := make([]preempt.Victim, 0, len(c.victims)+len(c.fixed))
	for i := range c.victims {
		if !c.lasting[i] {
			all = append(all, ends(c.victims[i]))
		}
	}
	for i := range c.fixed {
		all = append(all, ends(c.fixed[i]))
	}
	return all
}

// ends returns an instance as one that ends by itself: the longer it has run the sooner, whatever its job is worth.
func ends(v preempt.Victim) preempt.Victim {
	v.Revocable, v.Stage, v.Priority, v.Since, v.Gang = true, preempt.Running, 0, -v.Since, preempt.NoGang
	return v
}

func gangOf(j *workload.Job) preempt.Gang {
	rows := make([]gang.Task, len(j.Tasks))
	for task := range rows {
		rows[task] = j.GangRow(task)
	}
	_, beyond := j.GangCount()
	return preempt.Gang{Surplus: gang.Surplus(beyond, rows)}
}

// input returns what the choice of what gives way to a head depends on.
func (p *pass) input(number int, h *head) *preempt.Input {
	c, j := p.look(), p.s.Job(h.job)
	in := &preempt.Input{
		Pool: number, Revocable: j.Spec.Revocable, Priority: j.Spec.Priority, Partial: h.key != 0,
		Over: make([]terms.Amounts, len(p.entitled)), Nodes: slices.Clip(c.nodes), Victims: c.victims, Gangs: c.gangs,
		Unread: c,
	}
	for pool := range in.Over {
		held, stopping := p.s.Account(pool).Held, p.s.StoppingIn(pool)
		for k := range in.Over[pool] {
			over := held.NonSlack[k] - stopping.NonSlack[k] - p.entitled[pool].NonSlack[k]
			if in.Revocable {
				over = held.Slack[k] - stopping.Slack[k] - p.entitled[pool].Slack[k]
			}
			in.Over[pool][k] = max(over, 0)
			if pool == number {
				in.Room[k] = -over - h.kept[k]
			}
		}
	}
	// What comes free for those of the pool to which something gives way already is theirs.
	for _, id := range p.s.NominatedJobs() {
		nomination, _ := p.s.NominationOf(id)
		other := p.s.Job(id)
		if nomination.Backfill || other == nil || other.Spec.Revocable != in.Revocable || p.s.PoolOf(other) != number {
			continue
		}
		for _, seat := range nomination.Seats {
			for k := range in.Room {
				in.Room[k] -= seat.Need[k] * int64(seat.Count)
			}
		}
	}
	p.addWants(in, h)
	p.lower(in, h)
	return in
}

// addWants adds what the head wants to the input.
func (p *pass) addWants(in *preempt.Input, h *head) {
	counts, _ := p.membersOf(p.s.Job(h.job))
	for _, task := range p.tasksOf(h) {
		count := h.most
		if h.key == 0 {
			count = counts[task]
		}
		q := place.NewSearch(p.s, facts.KeyOf(h.job, task), nil).Within(p.spots)
		in.Wants = append(in.Wants, preempt.Want{Need: q.Spec.Amounts(), Count: count, Most: q.Most})
	}
}

// lower bounds the room of the pool by the limits of those above it. If the head is entitled to more, others below the
// same limit have to make room.
func (p *pass) lower(in *preempt.Input, h *head) {
	stopping := make([]terms.Work, len(p.entitled))
	for pool := range stopping {
		stopping[pool] = p.s.StoppingIn(pool)
	}
	ancestorLimits, need := admission.AncestorLimitsOf(p.s, p.entitled, stopping), terms.Amounts{}
	if ancestorLimits == nil {
		return
	}
	for _, id := range p.s.NominatedJobs() {
		nomination, _ := p.s.NominationOf(id)
		if number := p.s.PoolOf(p.s.Job(id)); number >= 0 && !nomination.Backfill {
			for _, seat := range nomination.Seats {
				ancestorLimits.Charge(number, &terms.Work{NonSlack: seat.Need}, int64(seat.Count))
			}
		}
	}
	for _, want := range in.Wants {
		for k, amount := range want.Need {
			need[k] += amount * int64(want.Count)
		}
	}
	if above, end, left, short := ancestorLimits.Short(in.Pool, &need); short && h.entitled {
		in.Room, in.Subtree = left, preempt.Subtree{First: above, End: end}
		return
	}
	left := ancestorLimits.Of(in.Pool, false)
	for k := range in.Room {
		in.Room[k] = min(in.Room[k], left[k])
	}
}

// chooser returns what gives way; ok is false if nothing could.
type chooser func(in *preempt.Input) (plan preempt.Plan, ok bool)

// inDomain chooses for a head. What is to be in one domain and is in none yet is tried in each: the fewest give way.
func (p *pass) inDomain(h *head, in *preempt.Input, choose chooser) (best preempt.Plan, ok bool) {
	j := p.s.Job(h.job)
	if _, found := place.HomeOf(p.s, j); j.Spec.Within == "" || found {
		return choose(in)
	}
	if in.Unread != nil {
		p.readAll(in)
	}
	nodes := in.Nodes
	division := p.s.EnsureDivision(j.Spec.Within)
	for at := range division.Values {
		d := place.NewDomain(division, at)
		one := *in
		one.Nodes = slices.DeleteFunc(slices.Clone(nodes), func(n preempt.Node) bool { return !d.Has(p.s.Node(n.Index)) })
		plan, found := choose(&one)
		if found && (!ok || len(plan.Victims) < len(best.Victims)) {
			best, ok = plan, true
		}
	}
	return best, ok
}

// readAll reads all that a choice may depend on.
func (p *pass) readAll(in *preempt.Input) {
	c := p.look().all()
	in.Nodes, in.Victims, in.Gangs, in.Unread = slices.Clip(c.nodes), c.victims, c.gangs, nil
}

// triesMax bounds how often nodes are left out that turn out not to have the devices or ports.
const triesMax = 4

// choose returns what gives way to a head. Where it asks for devices or ports, which are not amounts, or minds what
// runs beside it, the plan is tried: its own instances may be in each other's way.
func (p *pass) choose(h *head, in *preempt.Input) (plan preempt.Plan, ok bool) {
	for range triesMax {
		plan, ok = preempt.Choose(in)
		p.s.Visit(len(in.Nodes) + len(in.Victims))
		if !ok {
			return plan, false
		}
		wrong := p.unfit(h, in, &plan)
		if len(wrong) == 0 {
			return plan, true
		}
		var nodes []preempt.Node
		for _, n := range in.Nodes {
			if !slices.Contains(wrong, n.Index) {
				nodes = append(nodes, n)
			}
		}
		in.Nodes = nodes
	}
	return plan, false
}

// minds tells whether more than amounts counts for a head.
func (p *pass) minds(h *head) bool {
	j := p.s.Job(h.job)
	return slices.ContainsFunc(p.tasksOf(h), func(task int) bool {
		spec := j.TaskSpecOf(task, j.Version)
		social := slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool { return c.Social() })
		return len(spec.Devices)+len(spec.Ports) > 0 || social
	})
}

// unfit returns the nodes of a plan on which its seats would not do, taken one after the other.
func (p *pass) unfit(h *head, in *preempt.Input, plan *preempt.Plan) (wrong []facts.NodeIndex) {
	tasks, j := p.tasksOf(h), p.s.Job(h.job)
	if !p.minds(h) {
		return nil
	}
	trial, fork := p.s.Copy(), p.spots.Fork(j)
	end := func(r facts.SlotRef) {
		slot, _ := trial.SlotAt(r)
		trial.SetSlot(r, facts.Slot{Order: slot.Order, Node: slot.Node, Version: slot.Version, Phase: facts.Stopped})
	}
	for _, chosen := range plan.Victims {
		end(in.Victims[chosen.Victim].Slot)
	}
	for _, seat := range plan.Seats {
		for _, r := range append([]facts.SlotRef(nil), trial.Node(seat.Node).Held...) {
			if slot, _ := trial.SlotAt(r); preemptible.Leaves(&slot, trial.Rules) {
				end(r)
			}
		}
	}
	for _, seat := range plan.Seats {
		if q := place.NewSearch(trial, facts.KeyOf(h.job, tasks[seat.Want]), nil).Within(fork); !q.Seat(seat.Node,
			seat.Count) {
			wrong = append(wrong, seat.Node)
		}
	}
	return wrong
}
