package preempt

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// offer is what would have to go on a node for one instance more.
type offer struct {
	// short is what is still missing.
	short   terms.Amounts
	singles []int32
	broken  []int32
	// added is what each of the broken gangs brings on this node.
	added []terms.Amounts
	cost  cost
	// limited tells that a victim could not go because others had gone.
	limited bool
}

// cost is what an instance more on a node costs: the most valuable of those that go, and how many go.
type cost struct {
	worst value
	count int
	// slot is that of the most valuable one.
	slot facts.SlotRef
}

func (a *cost) compare(b *cost) int {
	if a.count == 0 || b.count == 0 {
		return a.count - b.count
	}
	if c := a.worst.compare(&b.worst); c != 0 {
		return c
	}
	return a.count - b.count
}

// order compares costs and then slots: of equal ones the highest goes first.
func (a *cost) order(b *cost) int {
	if c := a.compare(b); c != 0 {
		return c
	}
	return b.slot.Compare(a.slot)
}

// include adds a victim that is worth no more than those before it.
func (a *cost) include(worth value, count int, slot facts.SlotRef) {
	if a.count == 0 {
		a.worst, a.slot = worth, slot
	}
	a.count += count
}

// ask finds the offer of a node for one instance more; with own only victims that make room in the pool may go. It
// returns false if the node cannot run it. It leaves everything as it was.
func (c *choice) ask(at int32, want int, own bool) bool {
	n, o := &c.nodes[at], &c.offer
	*o = offer{singles: o.singles[:0], broken: o.broken[:0], added: o.added[:0], short: c.in.Wants[want].Need}
	if c.seatsLeft(n, want) == 0 {
		return false
	}
	o.short.Add(&n.free, -1)
	if o.covered() {
		return true
	}
	victims := c.victimsOf(n)
	found := c.collect(victims, own) || o.limited && c.collectOne(victims, own) || c.breaks && c.collectGangs(victims, own)
	if found {
		c.trim()
	}
	for _, i := range o.singles {
		c.putBack(i)
	}
	for _, id := range o.broken {
		c.spendGang(id, -1)
	}
	return found
}

func (o *offer) covered() bool {
	for _, short := range o.short {
		if short > 0 {
			return false
		}
	}
	return true
}

// collect lets victims go, least valuable first, until nothing is missing.
func (c *choice) collect(victims []int32, own bool) bool {
	for _, i := range victims {
		if c.offer.covered() {
			break
		}
		c.take(i, own)
	}
	return c.offer.covered()
}

// collectOne lets the first victim go that is enough, if there is one: those that went before may have kept it back.
func (c *choice) collectOne(victims []int32, own bool) bool {
	o, before := &c.offer, slices.Clone(c.offer.singles)
	for _, i := range before {
		o.short.Add(&c.in.Victims[i].Need, 1)
		c.putBack(i)
	}
	o.singles = o.singles[:0]
	for _, i := range victims {
		if fits(&o.short, &c.in.Victims[i].Need) && c.take(i, own) {
			return true
		}
	}
	for _, i := range before {
		c.take(i, own)
	}
	return false
}

// take lets a victim go if that helps and is allowed, and tells whether it does.
func (c *choice) take(i int32, own bool) bool {
	o, v := &c.offer, &c.in.Victims[i]
	if c.gone[i] || own && !c.makesRoom[i] || !lessens(&v.Need, &o.short) {
		return false
	}
	if !c.mayGo(i) {
		o.limited = true
		return false
	}
	c.spend(i, 1)
	c.gone[i] = true
	o.short.Add(&v.Need, -1)
	o.singles = append(o.singles, i)
	return true
}

func (c *choice) putBack(i int32) {
	c.spend(i, -1)
	c.gone[i] = false
}

// collectGangs lets gangs break, least valuable first, until nothing is missing.
func (c *choice) collectGangs(victims []int32, own bool) bool {
	o := &c.offer
	var ids []int32
	for _, i := range victims {
		id := int32(c.in.Victims[i].Gang)
		if id != NoGang && !c.gone[i] && !slices.Contains(ids, id) && (!own || c.makesRoom[i]) {
			ids = append(ids, id)
		}
	}
	slices.SortStableFunc(ids, c.compareGangs)
	for _, id := range ids {
		var added terms.Amounts
		for _, i := range victims {
			if v := &c.in.Victims[i]; v.Gang == int(id) && !c.gone[i] {
				added.Add(&v.Need, 1)
			}
		}
		if !o.covered() && lessens(&added, &o.short) && c.mayBreak(id) {
			o.short.Add(&added, -1)
			c.spendGang(id, 1)
			o.broken, o.added = append(o.broken, id), append(o.added, added)
		}
	}
	return o.covered()
}

// trim keeps those, most valuable first, without which nothing is missing either, and sums up the cost.
func (c *choice) trim() {
	o := &c.offer
	for at := len(o.broken) - 1; at >= 0; at-- {
		id := o.broken[at]
		o.short.Add(&o.added[at], 1)
		if o.covered() {
			c.spendGang(id, -1)
			o.broken = slices.Delete(o.broken, at, at+1)
			continue
		}
		o.short.Add(&o.added[at], -1)
		g := &c.gangs[id]
		o.cost.include(g.worth, len(g.members), facts.SlotRef{Job: c.in.Victims[g.members[0]].Slot.Job})
	}
	for at := len(o.singles) - 1; at >= 0; at-- {
		i := o.singles[at]
		v := &c.in.Victims[i]
		if !slices.Contains(o.broken, int32(v.Gang)) {
			o.short.Add(&v.Need, 1)
			if !o.covered() {
				o.short.Add(&v.Need, -1)
				o.cost.include(valueOf(v), 1, v.Slot)
				continue
			}
		}
		// It is not needed, or goes with its gang.
		c.putBack(i)
		o.singles = slices.Delete(o.singles, at, at+1)
	}
}

// accept lets those go that the offer names.
func (c *choice) accept() {
	for _, i := range c.offer.singles {
		c.end(i)
	}
	for _, id := range c.offer.broken {
		c.breakUp(id)
	}
	c.singles, c.broken = append(c.singles, c.offer.singles...), append(c.broken, c.offer.broken...)
}

// victimsOf returns the victims of a node in their order.
func (c *choice) victimsOf(n *node) []int32 {
	if !n.sorted {
		n.sorted = true
		c.sort(n.victims)
	}
	return n.victims
}

// seatsLeft returns how many more instances of a want the node may run by rules that are not about amounts.
func (c *choice) seatsLeft(n *node, want int) uint32 {
	if n.limits == nil {
		n.limits, n.seats = make([]uint32, len(c.in.Wants)), make([]uint32, len(c.in.Wants))
		for i := range c.in.Wants {
			n.limits[i] = c.in.Wants[i].Count
			if most := c.in.Wants[i].Most; most != nil {
				n.limits[i] = min(n.limits[i], most(n.index))
			}
		}
	}
	return n.limits[want] - n.seats[want]
}
