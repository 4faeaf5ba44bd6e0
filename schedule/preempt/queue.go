package preempt

import "starling/cluster/facts"

// queue holds the nodes that may be taken for the next instance, the cheapest first. What it says of a node is a lower
// bound: as others are chosen and take seats, a node only gets dearer, or is added again where it gets cheaper. So only
// the nodes at the front are asked again.
type queue struct {
	entries []entry
}

// entry is a node with what it costs at least.
type entry struct {
	cost cost
	node int32
	// asked tells that the cost was right when it was entered; otherwise it is a bound.
	asked bool
}

func (c *choice) before(a, b *entry) bool {
	if order := a.cost.order(&b.cost); order != 0 {
		return order < 0
	}
	if a.asked != b.asked {
		return b.asked
	}
	return c.nodes[a.node].index < c.nodes[b.node].index
}

// fill enters all nodes that come into question for a want, and returns how many instances they can run at most.
func (c *choice) fill(q *queue, want int, own bool) (most int64) {
	q.entries = q.entries[:0]
	for at := range c.nodes {
		if e, count := c.entryOf(int32(at), want, own); count > 0 {
			q.entries = append(q.entries, e)
			most += count
		}
	}
	for at := len(q.entries)/2 - 1; at >= 0; at-- {
		c.sink(q, at)
	}
	return most
}

// entryOf returns a node with a lower bound of what an instance more costs on it, and how many it can run if all go
// that may.
func (c *choice) entryOf(at int32, want int, own bool) (e entry, count int64) {
	n, most, least := &c.nodes[at], c.nodes[at].free, cost{}
	for _, i := range n.victims {
		v := &c.in.Victims[i]
		if c.gone[i] || own && !c.makesRoom[i] {
			continue
		}
		one := cost{valueOf(v), 1, v.Slot}
		if v.Gang != NoGang && c.surplus(v) == 0 {
			if !c.breaks {
				continue
			}
			one.worst, one.slot = c.gangs[v.Gang].worth, facts.SlotRef{Job: v.Slot.Job}
		}
		if least.count == 0 || one.order(&least) < 0 {
			least = one
		}
		most.Add(&v.Need, 1)
	}
	need := &c.in.Wants[want].Need
	if fits(need, &n.free) {
		least = cost{}
	}
	if !fits(need, &most) {
		return e, 0
	}
	return entry{cost: least, node: at}, int64(need.Times(&most, c.in.Wants[want].Count))
}

// cheapest returns the node that costs least for one instance more, and leaves its offer; false if none can run it.
func (c *choice) cheapest(kind, want int) (int32, bool) {
	q := &c.queues[kind]
	for {
		page := c.cheapestUnread(kind)
		if page != nil && (len(q.entries) == 0 || page.bound.order(&q.entries[0].cost) <= 0) {
			c.read(page.number)
			continue
		}
		if len(q.entries) == 0 {
			return 0, false
		}
		e := c.pop(q)
		if !c.ask(e.node, want, kind == onlyOwn) {
			continue
		}
		e.cost, e.asked = c.offer.cost, true
		if len(q.entries) > 0 && c.before(&q.entries[0], &e) || page != nil && page.bound.order(&e.cost) <= 0 {
			c.push(q, e)
			continue
		}
		return e.node, true
	}
}

// cheapened enters a node again that a victim left.
func (c *choice) cheapened(at int32) {
	for i := range c.queues {
		c.push(&c.queues[i], entry{node: at})
	}
}

func (c *choice) push(q *queue, e entry) {
	q.entries = append(q.entries, e)
	at := len(q.entries) - 1
	for at > 0 && c.before(&q.entries[at], &q.entries[(at-1)/2]) {
		above := (at - 1) / 2
		q.entries[at], q.entries[above] = q.entries[above], q.entries[at]
		at = above
	}
}

func (c *choice) pop(q *queue) entry {
	first, last := q.entries[0], len(q.entries)-1
	q.entries[0] = q.entries[last]
	q.entries = q.entries[:last]
	c.sink(q, 0)
	return first
}

func (c *choice) sink(q *queue, at int) {
	for {
		least := at
		for below := 2*at + 1; below <= 2*at+2 && below < len(q.entries); below++ {
			if c.before(&q.entries[below], &q.entries[least]) {
				least = below
			}
		}
		if least == at {
			return
		}
		q.entries[at], q.entries[least] = q.entries[least], q.entries[at]
		at = least
	}
}
