package preempt

import "slices"

func newChoice(in *Input) *choice {
	c := &choice{in: in, room: in.Room, over: slices.Clone(in.Over)}
	for i := range in.Wants {
		for k, need := range in.Wants[i].Need {
			c.wanted[k] = c.wanted[k] || need > 0
		}
	}
	c.slack = c.slackRelieves()
	c.readBounds()
	c.add(0, 0)
	return c
}

// add takes in the nodes and victims of the input from some on, and the gangs that are new.
func (c *choice) add(nodes, victims int) {
	for i := nodes; i < len(c.in.Nodes); i++ {
		n := &c.in.Nodes[i]
		c.nodes = append(c.nodes, node{index: n.Index, free: n.Free})
		if missing := int(n.Index) + 1 - len(c.at); missing > 0 {
			c.at = append(c.at, make([]int32, missing)...)
		}
		c.at[n.Index] = int32(i) + 1
	}
	for i := len(c.gangs); i < len(c.in.Gangs); i++ {
		c.gangs = append(c.gangs, gang{surplus: slices.Clone(c.in.Gangs[i].Surplus)})
	}
	c.addMembers(victims)
	waiting := c.awaiting
	c.awaiting = nil
	for _, i := range waiting {
		c.settle(i)
	}
	for i := victims; i < len(c.in.Victims); i++ {
		v := &c.in.Victims[i]
		rule := c.rule(v)
		c.rules, c.gone = append(c.rules, rule), append(c.gone, false)
		c.makesRoom, c.sites = append(c.makesRoom, rule != 0 && c.opens(v, rule)), append(c.sites, -1)
		if rule != 0 {
			c.settle(int32(i))
		}
	}
}

// addMembers sums up the gangs of the victims from some on: a gang is worth as much as the most valuable of its
// members.
func (c *choice) addMembers(victims int) {
	for i := victims; i < len(c.in.Victims); i++ {
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

// settle lists a victim that may be ended with its node.
func (c *choice) settle(i int32) {
	n := c.in.Victims[i].Node
	switch {
	case int(n) < len(c.at) && c.at[n] > 0:
		c.sites[i] = c.at[n] - 1
		c.nodes[c.sites[i]].victims = append(c.nodes[c.sites[i]].victims, i)
	case c.in.Unread != nil && c.unread(n):
		c.sites[i] = awaited
		c.awaiting = append(c.awaiting, i)
	default:
		c.sites[i] = -1
	}
}
