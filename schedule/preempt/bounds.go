package preempt

import "starling/terms"

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
	case c.exceeds(&c.in.Over[v.Pool], &v.Need),
		v.Gang != NoGang && c.exceeds(&c.in.Over[v.Pool], &c.gangs[v.Gang].need):
		return ByEntitlement
	}
	return 0
}

// opens tells whether a victim that may be ended by a rule makes room in the pool.
func (c *choice) opens(v *Victim, rule Rule) bool {
	return rule == ByPriority || v.Pool >= c.in.Subtree.First && v.Pool < c.in.Subtree.End &&
		(!v.Revocable || c.in.Revocable || c.slack)
}

// exceeds tells whether of what a pool is not entitled to something is left, of a kind that is wanted and is part of an
// amount.
func (c *choice) exceeds(left, need *terms.Amounts) bool {
	for k, over := range left {
		if over > 0 && need[k] > 0 && c.wanted[k] {
			return true
		}
	}
	return false
}

// exhausted tells whether the pool is out of room for so many instances more, in a kind that they need.
func (c *choice) exhausted(need *terms.Amounts, count int64) bool {
	for k := range need {
		if need[k] > 0 && c.room[k] < need[k]*count {
			return true
		}
	}
	return false
}

// roomOf returns what comes free for the pool if a victim goes that makes room in it.
func (c *choice) roomOf(v *Victim) terms.Amounts {
	room := v.Need
	for k := range room {
		if v.Revocable && !c.in.Revocable && terms.Kind(k).Overcommitted() {
			room[k] = 0 // it stood beyond all limits
		}
	}
	return room
}

// slackRelieves tells whether the pool is out of room of a kind that comes free for it if something revocable goes.
func (c *choice) slackRelieves() bool {
	var need terms.Amounts
	for i := range c.in.Wants {
		need.Add(&c.in.Wants[i].Need, int64(c.in.Wants[i].Count))
	}
	for k := range need {
		if !terms.Kind(k).Overcommitted() && need[k] > 0 && c.room[k] < need[k] {
			return true
		}
	}
	return false
}

// mayGo tells whether a victim may be ended by itself, as things are.
func (c *choice) mayGo(i int32) bool {
	v := &c.in.Victims[i]
	return !c.gone[i] && (v.Gang == NoGang || c.surplus(v) > 0) &&
		(c.rules[i] != ByEntitlement || c.exceeds(&c.over[v.Pool], &v.Need))
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
	return !g.broken && c.rules[first] != 0 &&
		(c.rules[first] != ByEntitlement || c.exceeds(&c.over[c.in.Victims[first].Pool], &g.need))
}

// spend notes what a victim takes of what limits the choice; by -1 it gives that back.
func (c *choice) spend(i int32, by int64) {
	v := &c.in.Victims[i]
	if c.rules[i] == ByEntitlement {
		c.over[v.Pool].Add(&v.Need, -by)
	}
	if v.Gang != NoGang {
		g := &c.gangs[v.Gang]
		g.surplus[v.Slot.Task] = uint32(int64(g.surplus[v.Slot.Task]) - by)
		g.need.Add(&v.Need, -by)
	}
}

// spendGang does so for all of a gang that is left.
func (c *choice) spendGang(id int32, by int64) {
	g := &c.gangs[id]
	if first := g.members[0]; c.rules[first] == ByEntitlement {
		c.over[c.in.Victims[first].Pool].Add(&g.need, -by)
	}
}

// end chooses a victim by itself; keep takes it back.
func (c *choice) end(i int32) {
	c.reach(i)
	c.spend(i, 1)
	c.vacate(i, 1)
}

func (c *choice) keep(i int32) {
	c.spend(i, -1)
	c.vacate(i, -1)
}

// breakUp ends all members of a gang that are left; mend takes it back.
func (c *choice) breakUp(id int32) {
	for _, i := range c.gangs[id].members {
		c.reach(i)
	}
	g := &c.gangs[id]
	c.spendGang(id, 1)
	if len(g.along) == 0 {
		c.sort(g.members)
	}
	g.broken, g.along = true, g.along[:0]
	for _, i := range g.members {
		if !c.gone[i] {
			c.vacate(i, 1)
			g.along = append(g.along, i)
		}
	}
}

func (c *choice) mend(id int32) {
	g := &c.gangs[id]
	c.spendGang(id, -1)
	g.broken = false
	for _, i := range g.along {
		c.vacate(i, -1)
	}
}

// vacate frees what a victim holds, on its node and in its pool; by -1 the victim stays.
func (c *choice) vacate(i int32, by int64) {
	v := &c.in.Victims[i]
	c.gone[i] = by > 0
	if c.makesRoom[i] {
		room := c.roomOf(v)
		c.room.Add(&room, by)
	}
	if c.sites[i] >= 0 {
		n := c.touch(c.sites[i])
		c.spares.leave(c, n)
		n.free.Add(&v.Need, by)
		c.spares.enter(c, n)
	}
}
