package preempt

import "slices"

func newChoice(in *Input) *choice {
	c := &choice{
		in: in, room: in.Room, over: slices.Clone(in.Over), rules: make([]Rule, len(in.Victims)),
		gone:      make([]bool, len(in.Victims)),
		makesRoom: make([]bool, len(in.Victims)),
		gangs:     make([]gang, len(in.Gangs)), nodes: make([]node, len(in.Nodes)), sites: make([]int32, len(in.Victims)),
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
		g.need.Add(&v.Need, 1)
	}
}

// readVictims finds the rule for each victim and lists those of each node that may be ended.
func (c *choice) readVictims() {
	slack := c.slackRelieves()
	for i := range c.in.Victims {
		in, v := c.in, &c.in.Victims[i]
		c.sites[i] = -1
		if c.rules[i] = c.rule(v); c.rules[i] == 0 {
			continue
		}
		c.makesRoom[i] = c.rules[i] == ByPriority ||
			v.Pool >= in.Subtree.First && v.Pool < in.Subtree.End && (!v.Revocable || in.Revocable || slack)
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
