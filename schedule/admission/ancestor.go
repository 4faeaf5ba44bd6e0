package admission

import (
	"starling/cluster"
	"starling/terms"
	"starling/terms/pool"
)

// AncestorLimits tells what pools with others below them leave to those. All that are below a limit are entitled to no
// more than that together, but one may still hold what another, which asked later, is entitled to.
type AncestorLimits struct {
	parents []int
	// left is, by pool, how much more may be held below its limit, there and below.
	left []terms.Amounts
}

// AncestorLimitsOf returns those of a value, as if what stops in each pool had stopped; nil if no pool has a limit.
func AncestorLimitsOf(s *cluster.State, stopping []terms.Work) *AncestorLimits {
	tree := pool.Tree(s.Pools())
	limited := false
	for number := range tree { // a function of a pool would copy each to the heap
		limited = limited || tree[number].Limited()
	}
	if !limited {
		return nil
	}
	c := &AncestorLimits{parents: tree.Parents(), left: make([]terms.Amounts, len(tree))}
	for number := range tree {
		for k := range terms.AmountCount {
			c.left[number][k] = tree[number].Quotas[k].Limit
		}
	}
	for number := range tree {
		held := s.Account(number).Held
		if c.Charge(number, &held, 1); stopping != nil {
			c.Charge(number, &stopping[number], -1)
		}
	}
	return c
}

// Charge notes that a pool holds so much more, so many times.
func (c *AncestorLimits) Charge(number int, work *terms.Work, times int64) {
	for ; c != nil && number >= 0; number = c.parents[number] {
		for k := range terms.AmountCount {
			amount := work.NonSlack[k]
			if !k.Overcommitted() {
				amount += work.Slack[k] // the other slack is beyond all limits
			}
			c.left[number][k] -= amount * times
		}
	}
}

// Of returns how much more a pool may hold below the limits of those above it; nil if there are none.
func (c *AncestorLimits) Of(number int, revocable bool) *terms.Amounts {
	if c == nil {
		return nil
	}
	room := &terms.Amounts{}
	for k := range terms.AmountCount {
		if room[k] = terms.Unlimited; revocable && k.Overcommitted() {
			continue
		}
		for above := c.parents[number]; above >= 0; above = c.parents[above] {
			room[k] = min(room[k], c.left[above][k])
		}
	}
	return room
}

// Short returns the first pool above one that lacks something of what is needed below its limit, what that leaves, and
// where in the tree the pools below it end.
func (c *AncestorLimits) Short(number int, need *terms.Amounts) (above, end int, left terms.Amounts, short bool) {
	if c == nil {
		return 0, 0, left, false
	}
	for above = c.parents[number]; above >= 0; above = c.parents[above] {
		for k, amount := range need {
			short = short || amount > 0 && c.left[above][k] < amount
		}
		if !short {
			continue
		}
		for end = above + 1; end < len(c.parents) && c.parents[end] >= above; {
			end++
		}
		return above, end, c.left[above], true
	}
	return 0, 0, left, false
}
