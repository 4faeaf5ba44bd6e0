package explain

import (
	"cmp"
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/schedule/entitle"
	"starling/schedule/entitle/explanation"
	"starling/schedule/explain/suitable"
	"starling/schedule/explain/wording"
	"starling/terms"
	"starling/terms/pool"
)

// help says what may let an instance run, and more that may only together with that: a node is of no use to work that
// its pool does not admit.
func (c *diagnosis) help(p *queueForecast) (all, more hints) {
	switch {
	case c.offers == 0:
		return hints{{c.another("a node that takes work: starling agent on a machine makes it one", 1)}}, nil
	case c.possible == 0:
		return hints{{c.another("a node that has all it needs", 1)}, {c.smaller()}}, nil
	case c.e.crowded():
		most := c.e.spec.MaxRunning
		return hints{{ofJob(fmt.Sprintf("a max_running above %d", most),
			func(_ *terms.Job, t *terms.Task) { t.MaxRunning = most + 1 })}}, nil
	case p.served() || c.leaving(p) > 0:
		return nil, nil
	}
	if p != nil {
		all = append(p.admission(), p.advantage()...)
	}
	switch room := c.room(p); {
	case c.e.task.Unsuited:
		all = append(hints{room}, all...)
	case p.reason() != "":
		more = hints{room}
	case c.able == 0 || p.gathers():
		all = append(all, room)
	}
	return all, more
}

// room says what may make room on nodes.
func (c *diagnosis) room(p *queueForecast) (group []hint) {
	if p.gathers() {
		c.roomiest = terms.EnvVar{Name: p.gang.Attribute, Value: p.gang.Value}
		missing := p.gang.Members - p.gang.Fit
		return append(c.alike(missing), c.more(missing, "that one of its gang needs")...)
	}
	group = append(group, c.more(1, "it needs")...)
	if len(c.misses) > 0 && c.misses[0].hard == 0 {
		group = append(group, c.ends(&c.misses[0])...)
	}
	return group
}

// endsMax bounds the jobs of a node of which it is tried what their end brings.
const endsMax = 4

// ends are those jobs on a node whose end may make the room there: what is enough by its resources first, then the
// least important and of equal ones the youngest.
func (c *diagnosis) ends(m *miss) []hint {
	type other struct {
		job    *workload.Job
		enough int
	}
	var all []other
	for _, r := range m.node.Held {
		j := c.s.Job(r.Job)
		if j.ID == c.e.job.ID || j.Spec.Type == terms.Daemon ||
			slices.ContainsFunc(all, func(o other) bool { return o.job.ID == j.ID }) {
			continue
		}
		o := other{job: j}
		held := c.e.holds(j, func(slot facts.Slot) bool { return slot.Node == m.node.Index })
		for k := range m.short {
			if held[k] < m.short[k] {
				o.enough++
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b other) int {
		return cmp.Or(cmp.Compare(a.enough, b.enough), cmp.Compare(a.job.Spec.Priority, b.job.Spec.Priority),
			cmp.Compare(b.job.ID, a.job.ID))
	})
	var ends []hint
	for _, o := range all[:min(len(all), endsMax)] {
		end := endOf(o.job.Name())
		end.text = "the end of " + c.e.jobName(o.job.ID)
		ends = append(ends, end)
	}
	return chain(ends)
}

// another is a hint at nodes that have all that an instance needs and are else like the nearest.
func (c *diagnosis) another(text string, count uint32) hint {
	o := c.offer(1, terms.Amounts{})
	h := hint{text: text}
	for range count {
		h.trial.Nodes = append(h.trial.Nodes, o)
	}
	return h
}

// more is a hint at so many nodes, or at two or four times as many if that is too few: other work may come before it.
func (c *diagnosis) more(count uint32, needs string) []hint {
	var all []hint
	for ; len(all) < 3 && (count <= nodesMax || len(all) == 0); count *= 2 {
		text := fmt.Sprintf("another node%s that has all %s", c.there(), needs)
		if count > 1 {
			text = fmt.Sprintf("%d more nodes%s that each have all %s", count, c.there(), needs)
		}
		all = append(all, c.another(text, count))
	}
	return chain(all)
}

// alike is a hint at one node like the largest where its gang has the most room, if that lacks room for several.
func (c *diagnosis) alike(missing uint32) []hint {
	var best *cluster.Node
	for n := range c.s.Nodes() {
		node := c.s.Node(facts.NodeIndex(n))
		if node.Offer == nil {
			continue
		}
		value, _ := node.Offer.Attribute(c.roomiest.Name)
		if value == c.roomiest.Value && (best == nil ||
			slices.Compare(node.Offer.Capacity[:], best.Offer.Capacity[:]) > 0) {
			best = node
		}
	}
	if missing < 2 || best == nil {
		return nil
	}
	o := *best.Offer
	o.AwayUntil = 0
	return []hint{{text: fmt.Sprintf("another node like %s", best.Name), trial: Trial{Nodes: []terms.Offer{o}}}}
}

// nodesMax bounds the nodes that join in a trial.
const nodesMax = 24

// smaller is a hint at a task that could run on the nearest node.
func (c *diagnosis) smaller() hint {
	node := c.misses[0].node
	text := fmt.Sprintf("a task that needs no more than %s has", node.Name)
	return ofJob(text, func(_ *terms.Job, t *terms.Task) {
		suitable.Reduce(t, &suitable.View{State: c.e.s, Task: c.e.spec, Node: node})
	})
}

// served tells whether others give way to the work already, or will.
func (p *queueForecast) served() bool {
	return p != nil && len(p.yielding.told)+len(p.yielding.next) > 0
}

// advantage says what the job could say of itself to have room sooner.
func (p *queueForecast) advantage() (all hints) {
	urgent := func(above uint32, text string) []hint {
		return []hint{ofJob(text, func(j *terms.Job, _ *terms.Task) { j.Priority = above + 1 })}
	}
	if level := p.yielding.priority; level > 0 {
		all = append(all, urgent(level-1,
			fmt.Sprintf("a priority above %d: less important work of its pool would give way", level-1)))
	} else if first, _ := p.kept(); first != nil {
		all = append(all, urgent(first.Spec.Priority,
			fmt.Sprintf("a priority above %d, that of %s", first.Spec.Priority, first.Name())))
	}
	most := p.gang.Fit
	for i := range p.bounds {
		b := &p.bounds[i]
		most = min(most, uint32(max(b.most-b.held, 0)*int64(p.gang.Members)/b.need))
	}
	if most > 0 && most < p.gang.Members && p.gang.Uniform {
		all = append(all, []hint{ofJob(fmt.Sprintf("a gang of at most %d", most), func(j *terms.Job, t *terms.Task) {
			j.MinAvailable, t.MinAvailable = min(j.MinAvailable, most), min(t.MinAvailable, most)
		})})
	}
	return all
}

// admission says what may let the pool admit the work.
func (p *queueForecast) admission() (all hints) {
	pools := explanation.Of(p.e.s)
	for i := range p.bounds {
		b := &p.bounds[i]
		switch b.by {
		case byEntitlement:
			all = append(all, p.entitle(pools, b)...)
		case bySlack:
			all = append(all, p.slacken(pools, b)...)
		case byReservation:
			all = append(all, []hint{p.reserve(pools, p.Number, b), anew("preemptible: true", func(j *terms.Job, _ *terms.Task) {
				j.Preemption = terms.Preemptible
			})})
		case byAncestorLimit:
			all = append(all, []hint{p.limit(b.above, b.kind, b.missing())})
		case byControllers:
			all = append(all, []hint{p.controllers(b), p.reserve(pools, p.Number, b)})
		}
	}
	return append(all, p.ends())
}

// ends are jobs whose end may let the pool admit the work.
func (p *queueForecast) ends() (group []hint) {
	if j := p.occupant(); j != nil {
		group = append(group, endOf(j.Name()))
	}
	if first, _ := p.kept(); first != nil {
		group = append(group, endOf(first.Name()))
	}
	return group
}

// entitle says what may raise the entitlement of the pool, up its branch of the tree.
func (p *queueForecast) entitle(pools *explanation.Pools, b *bound) (all hints) {
	tree, k := p.e.s.Pools(), b.kind
	parents := pool.Tree(tree).Parents()
	var group []hint
	for at := p.Number; at >= 0; at = parents[at] {
		if over := pools.Use(at, k).Held + b.need - tree[at].Quotas[k].Limit; over > 0 {
			all = append(all, []hint{p.limit(tree[at].Path, k, over)})
		}
		cut := pools.Trace(at).Cut[k]
		if cut == entitle.ByShare {
			group = append(group, p.share(at, k))
		}
		if cut == entitle.ByShare || cut == entitle.ByParent {
			group = append(group, p.reserve(pools, at, b))
		}
		if cut != entitle.ByParent {
			break
		}
	}
	return append(all, append(group, p.nodes(b)))
}

// slacken says what may raise what revocable work of the pool may hold. Of the kinds that are not overcommitted that is
// a part of what the pool reserves.
func (p *queueForecast) slacken(pools *explanation.Pools, b *bound) hints {
	group := []hint{p.nodes(b)}
	percent, reserved := p.spec.SlackLimit, p.spec.Quotas[b.kind].Reservation
	if !b.kind.Overcommitted() && percent != terms.NoPercent {
		if part := percentOf(b.held+b.need, reserved); part <= 100 && part > percent {
			group = append(group, ofPool(fmt.Sprintf("a slack_limit of pool %s of %d percent", p.path, part),
				p.change(p.path, func(s *terms.Pool) {
					s.SlackLimit = part
				})))
		}
		if percent > 0 {
			whole := ((b.held+b.need)*100 + int64(percent) - 1) / int64(percent)
			group = append(group, p.reserved(pools, p.Number, b.kind, whole-reserved))
		}
	}
	return hints{group, {anew("revocable: false", func(j *terms.Job, _ *terms.Task) { j.Revocable = false })}}
}

// percentOf returns how many percent an amount is of the whole, rounded up; terms.NoPercent if that is more than the
// whole.
func percentOf(amount, whole int64) terms.Percent {
	if whole == 0 || amount > whole {
		return terms.NoPercent
	}
	return terms.Percent((amount*100 + whole - 1) / whole)
}

// nodes is a hint at nodes that bring what is missing, or as much as is needed if that is more.
func (p *queueForecast) nodes(b *bound) hint {
	of := func(amount_ int64) hint {
		brought := terms.Amounts{}
		brought[b.kind] = amount_
		c := newDiagnosis(p.e)
		return hint{text: fmt.Sprintf("nodes with %s more", wording.Amount(b.kind, amount_)),
			trial: Trial{Nodes: []terms.Offer{c.offer(1, brought)}}}
	}
	h := of(b.missing() - b.freed)
	if b.missing()-b.freed < b.need {
		more := of(b.need)
		h.instead = &more
	}
	return h
}

// change edits one pool of a tree.
func (p *queueForecast) change(path terms.PoolPath, edit func(*terms.Pool)) func([]terms.Pool) {
	return func(tree []terms.Pool) {
		if at, found := pool.Tree(tree).Find(path); found {
			edit(&tree[at])
		}
	}
}

// limit is a hint at a limit that is higher by so much.
func (p *queueForecast) limit(path terms.PoolPath, k terms.Kind, more int64) hint {
	return ofPool(fmt.Sprintf("a limit of pool %s that is %s higher", path, wording.Amount(k, more)),
		p.change(path, func(s *terms.Pool) {
			s.Quotas[k].Limit += more
		}))
}

// share is a hint at a share, as large as the largest beside the pool.
func (p *queueForecast) share(at int, k terms.Kind) hint {
	tree, most := p.e.s.Pools(), int64(1)
	for _, i := range explanation.Of(p.e.s).Siblings(at) {
		most = max(most, tree[i].Quotas[k].Share)
	}
	path := tree[at].Path
	return ofPool(fmt.Sprintf("a share of %d of %s for pool %s", most, k, path),
		p.change(path, func(s *terms.Pool) { s.Quotas[k].Share = most }))
}

// controllers is a hint at more that controllers may hold.
func (p *queueForecast) controllers(b *bound) hint {
	part := percentOf(b.held+b.need, p.spec.Quotas[b.kind].Reservation)
	text := fmt.Sprintf("a controller_limit of pool %s of %d percent", p.path, part)
	if part == terms.NoPercent {
		text = fmt.Sprintf("no controller_limit of pool %s", p.path)
	}
	return ofPool(text, p.change(p.path, func(s *terms.Pool) { s.ControllerLimit = part }))
}

// reserve says how much more would have to be reserved for a pool: what is missing, or as much as is needed if that is
// more.
func (p *queueForecast) reserve(pools *explanation.Pools, at int, b *bound) hint {
	h := p.reserved(pools, at, b.kind, b.missing()-b.freed)
	if b.by == byReservation && p.spec.Quotas[b.kind].Reservation == 0 {
		return p.reserved(pools, at, b.kind, b.held+b.need)
	}
	if b.missing()-b.freed < b.need {
		more := p.reserved(pools, at, b.kind, b.need)
		h.instead = &more
	}
	return h
}

// reserved is a hint at more that is reserved for a pool. What is not there is taken from the pools beside it, where it
// is idle first.
func (p *queueForecast) reserved(pools *explanation.Pools, at int, k terms.Kind, more int64) hint {
	tree := p.e.s.Pools()
	left := p.e.s.Capacity()[k]
	if parent := pool.Tree(tree).Parents()[at]; parent >= 0 {
		left = tree[parent].Quotas[k].Reservation
	}
	beside := pools.Siblings(at)
	for _, i := range beside {
		left -= tree[i].Quotas[k].Reservation
	}
	text := fmt.Sprintf("%s more reserved for pool %s", wording.Amount(k, more), tree[at].Path)
	if left < more {
		text += ", with less for the pools beside it"
	}
	idle := func(i int) int64 { return tree[i].Quotas[k].Reservation - pools.Use(i, k).Held }
	slices.SortStableFunc(beside, func(i, j int) int { return cmp.Compare(idle(j), idle(i)) })
	return ofPool(text, func(tree []terms.Pool) {
		tree[at].Quotas[k].Reservation += more
		short := more - max(left, 0)
		for _, i := range beside {
			if i != at && short > 0 {
				part := min(short, tree[i].Quotas[k].Reservation)
				tree[i].Quotas[k].Reservation, short = tree[i].Quotas[k].Reservation-part, short-part
			}
		}
	})
}

// occupant returns the job of the pool whose end would make the room within all its bounds, nil if there is none. What
// is bound by less leaves room in fewer bounds.
func (p *queueForecast) occupant() *workload.Job {
	if len(p.bounds) == 0 {
		return nil
	}
	short := terms.Amounts{}
	for i := range p.bounds {
		short[p.bounds[i].kind] = max(short[p.bounds[i].kind], p.bounds[i].missing())
	}
	return p.e.ender(&short, func(j *workload.Job) terms.Amounts {
		alike := j.Spec.Revocable == p.Unit.Revocable && (!p.fixed() || j.Spec.Class() == p.e.job.Spec.Class())
		if p.e.s.PoolOf(j) != p.Number || !alike {
			return terms.Amounts{}
		}
		return p.e.holds(j, func(facts.Slot) bool { return true })
	})
}

// holds returns what those instances of a job hold that count and were not told to end.
func (e *explainer) holds(j *workload.Job, counts func(facts.Slot) bool) (sum terms.Amounts) {
	for task, t := range j.Tasks {
		if t.Live() == 0 {
			continue
		}
		e.s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			if slot.Phase.Holds() && slot.Phase != facts.Stopping && counts(slot) {
				for k, amount := range j.TaskSpecOf(task, slot.Version).Amounts() {
					sum[k] += amount
				}
			}
			return true
		})
	}
	return sum
}

// ender returns the job whose end would give so much back, nil if there is none: of those that are enough the least
// important, and of equal ones the youngest.
func (e *explainer) ender(short *terms.Amounts, holds func(*workload.Job) terms.Amounts) (best *workload.Job) {
	e.s.EachJob(func(j *workload.Job) bool {
		if j.Finished != 0 || j.ID == e.job.ID || j.Spec.Type == terms.Daemon ||
			best != nil && j.Spec.Priority > best.Spec.Priority {
			return true
		}
		held := holds(j)
		for k := range short {
			if short[k] > held[k] {
				return true
			}
		}
		best = j
		return true
	})
	return best
}
