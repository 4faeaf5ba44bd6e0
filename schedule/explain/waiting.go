package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/explain/shares"
	"starling/schedule/explain/suitable"
	"starling/schedule/explain/wording"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/constraint"
)

// waiting explains instances of a queue entry that have no node, by holding the task against its pool and against every
// node. Returned are those among them that had one before.
func (e *explainer) waiting(key facts.TaskKey, returned []held) Finding {
	c, p := e.diagnosis(), e.queueForecast(key)
	c.aim()
	f := Finding{Slot: e.task.Fresh}
	switch {
	case len(returned) > 0:
		f.Slot, f.Since = returned[0].index, earliest(returned)
	case e.job.Version == 1:
		f.Since = e.job.SubmittedAt
	}
	if a := c.shares; a != nil && c.possible > 0 && e.served() && !e.crowded() {
		f.Reason, f.Details = a.Reason(), append(e.before(returned), c.allotted(p)...)
		return f
	}
	f.Reason, f.Until = c.reason(p), c.softEnd()
	f.Details = append(e.before(returned), p.details(f.Reason)...)
	f.Details = append(f.Details, c.details()...)
	f.Details = append(f.Details, p.contest(c)...)
	f.Details = append(f.Details, e.verified(c.help(p))...)
	return f
}

// reason says what keeps the task from running: that there are no nodes for it, its own bounds, its pool, or that the
// nodes are full.
func (c *diagnosis) reason(p *queueForecast) string {
	switch {
	case c.offers == 0 || c.possible == 0:
		return c.shortage()
	case c.e.task.Unsuited:
		return wording.Unsuited(c.e.job.HasGang())
	case c.e.crowded():
		return fmt.Sprintf("waits for the end of others: %d run, and no more may at a time", c.e.spec.MaxRunning)
	case c.leaving(p) > 0:
		return fmt.Sprintf("waits for virtual peers that are coming free: %s not ended yet",
			wording.Plural(c.leaving(p), "instance has", "instances have"))
	case p.reason() != "":
		return p.reason()
	case p.gathers():
		return "waits for room for its gang: " + p.together()
	case c.able > 0 && c.e.s.Unfinished:
		return "placement goes on with the next entry: there was more to place than one entry may"
	case c.able > 0:
		return "placement follows with the next entry"
	case c.meant > 0:
		return fmt.Sprintf("waits for room where its virtual peers are: %s: %s", c.misses[0].node.Name,
			strings.Join(c.misses[0].words, ", "))
	}
	return "waits for room" + c.there() + ": " + c.shortage()
}

// there says in which domain the job is, such as " in rack r1", if that bounds where the others may be, or in which one
// there is room for the most of its gang.
func (c *diagnosis) there() string {
	switch {
	case c.home != "":
		return fmt.Sprintf(" in %s %s", c.e.job.Spec.Within, c.home)
	case c.roomiest.Value != "":
		return fmt.Sprintf(" in %s %s", c.roomiest.Name, c.roomiest.Value)
	}
	return ""
}

// shortage says what of the nodes is short.
func (c *diagnosis) shortage() string {
	switch {
	case c.offers == 0 && c.nodes == 0:
		return "no node is in the cluster"
	case c.offers == 0:
		return "no node has volunteered to take work"
	case c.possible == 0 && c.offers == 1:
		return "the only node could not run it even if it were empty"
	case c.possible == 0:
		return fmt.Sprintf("none of the %d nodes could run it even if they were empty", c.offers)
	case c.onlyPorts():
		ports := slices.DeleteFunc(slices.Clone(c.e.spec.Ports), func(p terms.PortRequest) bool { return p.Number == 0 })
		return wording.Ports(ports) + " taken wherever it could run"
	}
	return wording.OfNodes(c.possible, c.offers) + " could run it, but not now"
}

// onlyPorts tells whether the nodes that could run the task have all that it needs but ports that it names.
func (c *diagnosis) onlyPorts() bool {
	return c.possible > 0 && c.able == 0 &&
		!slices.ContainsFunc(c.misses, func(m miss) bool { return m.hard == 0 && m.all > m.ports })
}

// crowded tells whether as many instances of the task run as may at a time.
func (e *explainer) crowded() bool {
	return !e.task.Unsuited && e.task.Asks() == 0 && e.spec.MaxRunning > 0 &&
		(!e.served() || e.task.Live() >= e.spec.MaxRunning)
}

// served tells whether the task runs as many instances as it has virtual peers.
func (e *explainer) served() bool {
	share, ok := e.task.Share()
	return ok && share <= e.task.Live()
}

// softEnd returns when the first soft constraint that fails somewhere ends, 0 if none does.
func (c *diagnosis) softEnd() (end terms.Time) {
	for i := range c.e.spec.Constraints {
		k := &c.e.spec.Constraints[i]
		if at := c.e.s.SoftEnds(c.e.key(), k); k.Soft && c.constraints[i] > 0 && (end == 0 || at < end) {
			end = at
		}
	}
	return end
}

// diagnosis is what came of holding a task against all nodes, without stopping at the first obstacle.
type diagnosis struct {
	e *explainer
	// s is the value without what is kept for the job itself.
	s *cluster.State
	// nominated are the jobs for which something of a node is kept.
	nominated map[facts.NodeIndex][]string
	// nodes are in the cluster, offers have volunteered, able could take an instance now, possible could if they were
	// empty. Gone have left.
	nodes, offers, able, possible, gone int
	// Counts of nodes, per constraint and so on as the task lists them; the second of two is for empty nodes.
	constraints         []int
	short, small        [terms.KindCount]int
	devices, deviceless []int
	models              []int
	ports               []int
	choices, choiceless int
	// largest is the most of each resource that any node offers.
	largest terms.Resources
	// away nodes have no agent now, drained ones are given nothing.
	away, drained int
	// exclusive nodes are kept for others, crowded ones have as many instances as the task allows.
	exclusive, crowded int
	// shares explains how many virtual peers the task has, if such run it. Those that it does not use are on meant nodes,
	// which come first among the misses; 0 if they may be on any.
	shares *shares.Explanation
	meant  int
	// home is the domain in which the job is; "" if it may be in any. Outside nodes are in another, or in none.
	home    string
	outside int
	// roomiest is the domain that has room for the most of its gang, if that must be in one.
	roomiest terms.EnvVar
	// kept nodes have room that is kept for others.
	kept   int
	misses []miss
}

// miss is a node that cannot run the task now.
type miss struct {
	node *cluster.Node
	// hard counts the obstacles that stay when the node is empty, all of them with those that go.
	hard, all int
	// ports counts those that are ports which the task names, and others have.
	ports int
	// lack is how much of its resources is short, in 1024ths of what is needed, short how much that is.
	lack  int64
	short terms.Amounts
	words []string
}

func (m *miss) add(hard bool, format string, args ...any) {
	m.all++
	if hard {
		m.hard++
	}
	m.words = append(m.words, fmt.Sprintf(format, args...))
}

func (e *explainer) diagnosis() *diagnosis {
	c := newDiagnosis(e)
	for n := range e.s.Nodes() {
		c.visit(e.s.Node(facts.NodeIndex(n)))
	}
	slices.SortStableFunc(c.misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.hard, b.hard), cmp.Compare(a.all, b.all), cmp.Compare(a.lack, b.lack))
	})
	return c
}

func newDiagnosis(e *explainer) *diagnosis {
	c, spec := &diagnosis{e: e, s: e.s, nominated: map[facts.NodeIndex][]string{}}, e.spec
	if _, nomination := e.s.NominationOf(e.job.ID); nomination {
		c.s = e.s.Copy()
		c.s.SetNomination(e.job.ID, facts.Nomination{})
	}
	for _, id := range c.s.NominatedJobs() {
		nomination, _ := c.s.NominationOf(id)
		for _, seat := range nomination.Seats {
			if name := e.jobName(id); !slices.Contains(c.nominated[seat.Node], name) {
				c.nominated[seat.Node] = append(c.nominated[seat.Node], name)
			}
		}
	}
	if e.job.Spec.Within != "" {
		c.home, _ = place.HomeOf(e.s.Copy(), e.job)
	}
	c.constraints, c.ports = make([]int, len(spec.Constraints)), make([]int, len(spec.Ports))
	c.devices, c.deviceless, c.models = make([]int, len(spec.Devices)), make([]int, len(spec.Devices)),
		make([]int, len(spec.Devices))
	return c
}

// visit holds the task against one node.
func (c *diagnosis) visit(node *cluster.Node) {
	if node.Offer == nil && node.Peer == "" {
		if !c.e.s.Registry().IsGone(node.Name) {
			c.gone++
		}
		return
	}
	c.nodes++
	if node.Offer == nil {
		return
	}
	c.offers++
	m := miss{node: node}
	c.checkState(&m)
	c.checkDomain(&m)
	c.checkConstraints(&m)
	c.checkResources(&m)
	c.checkDevices(&m)
	c.checkPorts(&m)
	if m.hard == 0 {
		c.possible++
	}
	if m.all == 0 {
		c.able++
		return
	}
	c.misses = append(c.misses, m)
}

func (c *diagnosis) checkState(m *miss) {
	switch offer := m.node.Offer; {
	case !offer.Open():
		c.away++
		m.add(false, "its agent is away until %s", wording.Clock(offer.AwayUntil))
	case m.node.Drain.On:
		c.drained++
		m.add(false, "is drained")
	}
}

// checkDomain asks whether the node is where the job is, which moves nowhere while any of it runs.
func (c *diagnosis) checkDomain(m *miss) {
	within := c.e.job.Spec.Within
	if within == "" {
		return
	}
	switch value, exists := m.node.Offer.Attribute(within); {
	case !exists:
		c.outside++
		m.add(true, "has no %s", within)
	case c.home != "" && value != c.home:
		c.outside++
		m.add(true, "%s is %s", within, value)
	}
}

func (c *diagnosis) checkConstraints(m *miss) {
	exclusive := false
	p := &suitable.View{State: c.e.s, Task: c.e.spec, Node: m.node}
	for i := range c.e.spec.Constraints {
		k := &c.e.spec.Constraints[i]
		exclusive = exclusive || k.Mentions(terms.ExclusiveAttribute)
		if c.ended(k) || k.Holds(p) {
			continue
		}
		c.constraints[i]++
		m.add(!k.Soft && !k.Social(), "%s", p.Failing(k))
	}
	if value, kept := m.node.Offer.Attribute(terms.ExclusiveAttribute); kept && !exclusive {
		c.exclusive++
		m.add(true, "is exclusive to %s", value)
	}
	if bound := c.e.spec.PerNodeMax; bound > 0 && c.e.s.OwnInstances(c.e.key(), m.node.Index) >= bound {
		c.crowded++
		m.add(false, "has %s of the task already", wording.Plural(int(bound), "instance", "instances"))
	}
}

// ended tells whether a soft constraint does not hold any more.
func (c *diagnosis) ended(k *constraint.Constraint) bool {
	return k.Soft && c.e.s.SoftEnds(c.e.key(), k) <= c.e.s.Time
}

func (c *diagnosis) checkResources(m *miss) {
	need, free := c.e.spec.Resources, c.s.Free(m.node.Index)
	nominated, whole := c.s.Node(m.node.Index).Nominated(), c.s.Unheld(m.node.Index)
	if !need.Fits(&free) && need.Fits(&whole) {
		c.kept++
	}
	for k := range need {
		kind, offered := terms.Kind(k), m.node.Offer.Capacity[k]
		c.largest[k] = max(c.largest[k], offered)
		if need[k] <= free[k] {
			continue
		}
		short := need[k] - free[k]
		m.lack += short / (need[k]>>10 + 1)
		m.short[k] = short
		c.short[k]++
		switch {
		case need[k] > offered:
		case nominated[k] > 0:
			m.add(false, "%s short, with %s kept for %s", wording.Amount(kind, short), wording.Amount(kind, nominated[k]),
				wording.Some(c.nominated[m.node.Index]))
			continue
		default:
			m.add(false, "%s short", wording.Amount(kind, short))
			continue
		}
		c.small[k]++
		m.add(true, "%s short (it has %s in all)", wording.Amount(kind, short), wording.Amount(kind, offered))
	}
}

func (c *diagnosis) checkDevices(m *miss) {
	for i, d := range c.e.spec.Devices {
		offered := m.node.DeviceOf(d.Kind)
		one := terms.DeviceRequest{Kind: d.Kind, Amount: min(d.Amount, terms.WholeDevice)}
		switch {
		case terms.WholeDevice*terms.Millidevices(offered.Count) < d.Amount:
			c.deviceless[i]++
			m.add(true, "has %s", wording.Devices(d.Kind, terms.WholeDevice*terms.Millidevices(offered.Count)))
		case !d.Takes(offered.Model):
			c.models[i]++
			m.add(true, "its %s is %s", d.Kind, cmp.Or(offered.Model, "of no known model"))
		case m.node.DeviceTimes(&d, 1) == 0 && d.Share():
			c.devices[i]++
			m.add(false, "no %s has %s free", d.Kind, d.Amount)
		case m.node.DeviceTimes(&d, 1) == 0:
			c.devices[i]++
			m.add(false, "%d of %s free", m.node.DeviceTimes(&one, terms.DevicesMax),
				wording.Devices(d.Kind, terms.WholeDevice*terms.Millidevices(offered.Count)))
		}
	}
}

func (c *diagnosis) checkPorts(m *miss) {
	offer := m.node.Offer
	choices, free, size := 0, m.node.PortsFree(), int(offer.PortLast)-int(offer.PortFirst)+1
	if offer.PortLast == 0 {
		size = 0
	}
	for i, p := range c.e.spec.Ports {
		ours := p.Number >= offer.PortFirst && p.Number <= offer.PortLast
		switch {
		case p.Number == 0:
			choices++
		case m.node.PortUsed(p.Number):
			c.ports[i]++
			m.ports++
			m.add(false, "port %d is taken by %s", p.Number, c.holder(m.node, p.Number))
			if ours {
				size--
			}
		case ours:
			free, size = free-1, size-1
		}
	}
	switch {
	case choices == 0:
	case choices > size:
		c.choiceless++
		m.add(true, "offers %s to choose from", wording.Plural(max(size, 0), "port", "ports"))
	case choices > free:
		c.choices++
		m.add(false, "%s free to choose from", wording.Plural(max(free, 0), "port", "ports"))
	}
}

// holder returns which slot has a port.
func (c *diagnosis) holder(node *cluster.Node, number uint16) string {
	for _, use := range node.Ports {
		if use.Number == number {
			return c.e.instances([]facts.SlotRef{use.Slot})
		}
	}
	return "nobody"
}

// details returns the proof: the count of each obstacle, and the nearest misses.
func (c *diagnosis) details() (proof []string) {
	if c.offers > 0 {
		proof = append(proof, fmt.Sprintf("needs %s per instance", c.needs()))
	}
	if idle := c.nodes - c.offers; idle > 0 {
		proof = append(proof, wording.Plural(idle, "node takes no work yet: it has not volunteered",
			"nodes take no work yet: they have not volunteered"))
	}
	if c.gone > 0 {
		proof = append(proof, wording.Plural(c.gone, "node has left the cluster", "nodes have left the cluster"))
	}
	for _, o := range c.obstacles() {
		line := o.What
		if o.Nodes > 0 {
			line += " on " + wording.OfNodes(o.Nodes, c.offers)
		}
		proof = append(proof, line)
	}
	for _, m := range c.misses[:min(len(c.misses), wording.Most)] {
		proof = append(proof, fmt.Sprintf("nearest: %s: %s", m.node.Name, strings.Join(m.words, ", ")))
	}
	return proof
}

// obstacles returns everything that keeps some node from running the task.
func (c *diagnosis) obstacles() []Obstacle {
	var found []Obstacle
	count := func(nodes int, format string, args ...any) {
		if nodes > 0 {
			found = append(found, Obstacle{fmt.Sprintf(format, args...), nodes})
		}
	}
	spec := c.e.spec
	count(c.away, "the agent is away with notice")
	count(c.drained, "a drain is under way")
	if c.home != "" {
		count(c.outside, "%s is not %s, where its job is,", c.e.job.Spec.Within, c.home)
	} else {
		count(c.outside, "there is no %s", c.e.job.Spec.Within)
	}
	for i := range spec.Constraints {
		count(c.constraints[i], "constraint %s fails", wording.Constraint(&spec.Constraints[i]))
	}
	count(c.exclusive, "it is kept for work with a constraint on %s", terms.ExclusiveAttribute)
	count(c.crowded, "the bound of %d on a node is reached", spec.PerNodeMax)
	for k := range spec.Resources {
		kind := terms.Kind(k)
		count(c.short[k], "%s is short", kind)
		if c.small[k] > 0 && spec.Resources[k] > c.largest[k] {
			found = append(found, Obstacle{What: "no node is so large: the largest has " + wording.Amount(kind, c.largest[k])})
		}
	}
	count(c.kept, "what is free is kept for others")
	for i, d := range spec.Devices {
		if d.Share() {
			count(c.deviceless[i], "there is no %s", d.Kind)
		} else {
			count(c.deviceless[i], "there are fewer than %s", wording.Devices(d.Kind, d.Amount))
		}
		count(c.models[i], "%s is not %s", d.Kind, strings.Join(d.Models, " or "))
		if d.Kind == terms.VirtualPeers.String() {
			count(c.devices[i], "all virtual peers are taken")
		} else {
			count(c.devices[i], "%s is taken by others", d.Kind)
		}
	}
	for i, p := range spec.Ports {
		count(c.ports[i], "port %d is taken", p.Number)
	}
	count(c.choiceless+c.choices, "too few ports are free to choose from")
	return found
}

// needs returns what a node must have for one instance.
func (c *diagnosis) needs() string {
	var parts []string
	for k, value := range c.e.spec.Resources {
		if value > 0 {
			parts = append(parts, wording.Amount(terms.Kind(k), value))
		}
	}
	for _, d := range c.e.spec.Devices {
		part := wording.Devices(d.Kind, d.Amount)
		if len(d.Models) > 0 {
			part += " (" + strings.Join(d.Models, " or ") + ")"
		}
		parts = append(parts, part)
	}
	choices := 0
	for _, p := range c.e.spec.Ports {
		if p.Number == 0 {
			choices++
		} else {
			parts = append(parts, fmt.Sprintf("port %d", p.Number))
		}
	}
	if choices > 0 {
		parts = append(parts, wording.Plural(choices, "free port", "free ports"))
	}
	for i := range c.e.spec.Constraints {
		parts = append(parts, wording.Constraint(&c.e.spec.Constraints[i]))
	}
	if c.home != "" {
		parts = append(parts, fmt.Sprintf("%s = %s", c.e.job.Spec.Within, c.home))
	}
	if bound := c.e.spec.PerNodeMax; bound > 0 {
		parts = append(parts, fmt.Sprintf("at most %d on a node", bound))
	}
	if len(parts) == 0 {
		return "nothing but a node"
	}
	return strings.Join(parts, ", ")
}
