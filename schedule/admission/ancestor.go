package admission

import (
	"starling/cluster"
	"starling/schedule/entitle"
	"starling/terms"
	"starling/terms/pool"
	"starling/terms/rules"
)

// AncestorLimits tells what pools with others below them leave to those, and what static reservations leave of the
// cluster. All that are below a limit, or in the cluster, are entitled to no more than that together, but one may still
// hold what another, which asked later, is entitled to.
type AncestorLimits struct {
	parents []int
	// left is, by pool, how much more may be held below its limit, there and below.
	left []terms.Amounts
	// idle is, by pool, what its static reservation keeps beside what is held and kept below it, less than 0 if that is
	// more; cluster is what no pool holds and nothing keeps.
	idle    []terms.Amounts
	cluster terms.Amounts
}

// AncestorLimitsOf returns those of a value, in which pools are entitled to so much, as if what stops in each pool had
// stopped; nil if no pool has a limit or a static reservation.
func AncestorLimitsOf(s *cluster.State, entitled []entitle.Entitlement, stopping []terms.Work) *AncestorLimits {
	tree := pool.Tree(s.Pools())
	limited, static := false, false
	for number := range tree { // a function of a pool would copy each to the heap
		limited = limited || tree[number].Limited()
		static = static || s.Rules >= rules.StaticKept && tree[number].Static()
	}
	if !limited && !static {
		return nil
	}
	c := &AncestorLimits{parents: tree.Parents(), left: make([]terms.Amounts, len(tree)),
		idle: make([]terms.Amounts, len(tree))}
	for k := range terms.AmountCount {
		c.cluster[k] = terms.Unlimited
		for number := range tree {
			c.left[number][k] = tree[number].Quotas[k].Limit
		}
	}
	if static {
		c.cluster = s.Capacity()
		c.reserve(tree, entitled)
	}
	for number := range tree {
		held := s.Account(number).Held
		if c.Charge(number, &held, 1); stopping != nil {
			c.Charge(number, &stopping[number], -1)
		}
	}
	return c
}

// reserve notes what static reservations keep, of what their pools are entitled to.
func (c *AncestorLimits) reserve(tree pool.Tree, entitled []entitle.Entitlement) {
	for number := len(tree) - 1; number >= 0; number-- { // what is below comes first
		for k := range c.cluster {
			kept, above := int64(0), &c.cluster[k]
			if q := &tree[number].Quotas[k]; q.Static {
				kept = min(q.Reservation, entitled[number].Total[k])
			}
			c.idle[number][k] += kept
			if parent := c.parents[number]; parent >= 0 {
				above = &c.idle[parent][k]
			}
			*above -= kept - min(c.idle[number][k], 0)
		}
	}
}

// Charge notes that a pool holds so much more, so many times.
func (c *AncestorLimits) Charge(number int, work *terms.Work, times int64) {
	if c == nil {
		return
	}
	for k := range terms.AmountCount {
		amount := work.NonSlack[k]
		if !k.Overcommitted() {
			amount += work.Slack[k] // the other slack is beyond all limits
		}
		amount *= times
		beyond := amount
		for at := number; at >= 0; at = c.parents[at] {
			c.left[at][k] -= amount
			idle := max(c.idle[at][k], 0)
			c.idle[at][k] -= beyond
			beyond -= idle - max(c.idle[at][k], 0)
		}
		c.cluster[k] -= beyond
	}
}

// Of returns how much more a pool may hold below the limits of those above it, and without what is kept for others; nil
// if there are none.
func (c *AncestorLimits) Of(number int, revocable bool) *terms.Amounts {
	if c == nil {
		return nil
	}
	room := c.unkept(number)
	for k := range terms.AmountCount {
		if revocable && k.Overcommitted() {
			room[k] = terms.Unlimited
			continue
		}
		for above := c.parents[number]; above >= 0; above = c.parents[above] {
			room[k] = min(room[k], c.left[above][k])
		}
	}
	return &room
}

// unkept returns how much more of the cluster a pool may hold without what is kept for others.
func (c *AncestorLimits) unkept(number int) terms.Amounts {
	room := c.cluster
	for k := range room {
		for at := number; at >= 0; at = c.parents[at] {
			room[k] += max(c.idle[at][k], 0)
		}
	}
	return room
}

// Short returns the first pool above one that lacks something of what is needed below its limit, what that leaves, and
// where in the tree the pools below it end; pool.Root where the cluster lacks it.
func (c *AncestorLimits) Short(number int, need *terms.Amounts) (above, end int, left terms.Amounts, short bool) {
	if c == nil {
		return 0, 0, left, false
	}
	lacks := func(left *terms.Amounts) (short bool) {
		for k, amount := range need {
			short = short || amount > 0 && left[k] < amount
		}
		return short
	}
	for above = c.parents[number]; above >= 0; above = c.parents[above] {
		if !lacks(&c.left[above]) {
			continue
		}
		for end = above + 1; end < len(c.parents) && c.parents[end] >= above; {
			end++
		}
		return above, end, c.left[above], true
	}
	left = c.unkept(number)
	return pool.Root, len(c.parents), left, lacks(&left)
}
