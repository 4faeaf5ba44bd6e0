package preempt

import "starling/terms"

// The queues: of all nodes, and of those where nothing goes or only what makes room in the pool. So are the lists of
// pages, and one has all of them.
const (
	anyone = iota
	onlyOwn
	all
)

// seat finds room for instances of a want, and returns for how many.
func (c *choice) seat(want int, most uint32) (seated uint32) {
	c.queues[onlyOwn].entries = c.queues[onlyOwn].entries[:0]
	c.split, c.want = false, want
	for i := range c.lists {
		c.lists[i].live = 0
	}
	c.readFitting(want)
	possible := c.fill(&c.queues[anyone], want, false)
	for _, which := range [...]int{anyone, all} {
		for possible < int64(most) && !c.in.Partial {
			count, more := c.readNext(which)
			if !more {
				break
			}
			possible += count
		}
	}
	if possible < int64(most) && !c.in.Partial {
		return 0
	}
	for seated < most {
		count := c.seatSome(want, most-seated)
		if count == 0 {
			break
		}
		seated += count
	}
	return seated
}

// seatSome finds room for one instance, or for several where nothing has to go. If the pool is out of room, what makes
// some has to go anyway: that is the first to make room on the machines as well.
func (c *choice) seatSome(want int, most uint32) uint32 {
	need, singles, broken := &c.in.Wants[want].Need, len(c.singles), len(c.broken)
	at, found := int32(0), false
	if c.exhausted(need, 1) {
		if !c.split {
			c.split = true
			c.fill(&c.queues[onlyOwn], want, true)
			c.listOwn()
		}
		at, found = c.cheapest(onlyOwn, want)
	}
	if !found {
		at, found = c.cheapest(anyone, want)
	}
	if !found {
		return 0
	}
	n, count := c.touch(at), uint32(1)
	if c.offer.cost.count == 0 && !c.exhausted(need, 1) {
		count = min(most, c.seatsLeft(n, want), need.Times(&n.free, most), need.Times(&c.room, most))
	}
	c.accept()
	c.sit(at, want, int64(count))
	if !c.relieve() {
		c.sit(at, want, -int64(count))
		c.undo(singles, broken)
		return 0
	}
	c.cheapened(at)
	for _, i := range c.singles[singles:] {
		c.reopen(i, at)
	}
	for _, id := range c.broken[broken:] {
		for _, i := range c.gangs[id].along {
			c.reopen(i, at)
		}
	}
	return count
}

// reopen enters the node of one that goes again, unless it has been.
func (c *choice) reopen(i, entered int32) {
	if at := c.sites[i]; at >= 0 && at != entered {
		c.cheapened(at)
	}
}

// sit gives so many instances seats on a node, or takes them back.
func (c *choice) sit(at int32, want int, count int64) {
	n, need := c.touch(at), c.in.Wants[want].Need
	c.spares.leave(c, n)
	n.seats[want] = uint32(int64(n.seats[want]) + count)
	for k := range need {
		n.free[k] -= need[k] * count
		c.room[k] -= need[k] * count
	}
	c.spares.enter(c, n)
}

// touch notes that a node has to do with the plan.
func (c *choice) touch(at int32) *node {
	n := &c.nodes[at]
	if !n.taken {
		n.taken, n.rank = true, int32(len(c.touched))
		c.touched = append(c.touched, at)
		c.seatsLeft(n, 0)
	}
	return n
}

// listOwn lists the victims that make room in the pool.
func (c *choice) listOwn() {
	if !c.listed {
		c.listed = true
		c.addOwn(0)
	}
}

// addOwn adds those of the victims from some on.
func (c *choice) addOwn(from int) {
	var more, merged []int32
	for i := from; i < len(c.in.Victims); i++ {
		if c.makesRoom[i] {
			more = append(more, int32(i))
		}
	}
	c.sort(more)
	for _, i := range c.own {
		for len(more) > 0 && compareVictims(&c.in.Victims[more[0]], &c.in.Victims[i]) < 0 {
			merged, more = append(merged, more[0]), more[1:]
		}
		merged = append(merged, i)
	}
	c.own, c.from = append(merged, more...), [terms.AmountCount]int{}
}

// lacking returns what the pool lacks of what is wanted.
func (c *choice) lacking() (short terms.Amounts) {
	for k := range short {
		if c.wanted[k] {
			short[k] = max(-c.room[k], 0)
		}
	}
	return short
}

// relieve lets those go that make room in the pool, wherever they are, until it holds no more than it may. It returns
// false if that cannot be.
func (c *choice) relieve() bool {
	for {
		short := c.lacking()
		if short == (terms.Amounts{}) {
			return true
		}
		if i, found := c.nextOwn(&short); found {
			c.end(i)
			c.singles = append(c.singles, i)
			continue
		}
		if !c.breaks {
			return false
		}
		id, found := c.nextGang(&short)
		if !found {
			return false
		}
		c.breakUp(id)
		c.broken = append(c.broken, id)
	}
}

// nextOwn returns the least valuable of the pool's victims that has something of what is short. None that was passed
// over comes into question again but by undo.
func (c *choice) nextOwn(short *terms.Amounts) (int32, bool) {
	for {
		best := c.firstOwn(short)
		page := c.cheapestUnread(onlyOwn)
		if page != nil && c.listed {
			if best < len(c.own) {
				v := &c.in.Victims[c.own[best]]
				worth := cost{valueOf(v), 1, v.Slot}
				if worth.order(&page.bound) < 0 {
					return c.own[best], true
				}
			}
			c.read(page.number)
			continue
		}
		if best == len(c.own) {
			return 0, false
		}
		return c.own[best], true
	}
}

// firstOwn returns where that one stands in the list, of those that were read.
func (c *choice) firstOwn(short *terms.Amounts) int {
	best := len(c.own)
	for k := range short {
		if short[k] == 0 {
			continue
		}
		at := c.from[k]
		for at < len(c.own) && (c.in.Victims[c.own[at]].Need[k] == 0 || !c.mayGo(c.own[at])) {
			at++
		}
		c.from[k] = at
		best = min(best, at)
	}
	return best
}

// nextGang returns the least valuable gang of the pool that has something of what is short.
func (c *choice) nextGang(short *terms.Amounts) (int32, bool) {
	c.readAll(onlyOwn)
	best := int32(-1)
	for id := range c.gangs {
		g := &c.gangs[id]
		if len(g.members) == 0 || !c.makesRoom[g.members[0]] || !c.mayBreak(int32(id)) || !lessens(&g.need, short) {
			continue
		}
		if best < 0 || c.compareGangs(int32(id), best) < 0 {
			best = int32(id)
		}
	}
	return best, best >= 0
}

// undo takes back the choices that were made since there were so many.
func (c *choice) undo(singles, broken int) {
	for len(c.broken) > broken {
		c.mend(c.broken[len(c.broken)-1])
		c.broken = c.broken[:len(c.broken)-1]
	}
	for len(c.singles) > singles {
		c.keep(c.singles[len(c.singles)-1])
		c.singles = c.singles[:len(c.singles)-1]
	}
	c.from = [terms.AmountCount]int{}
}
