// Package explanation tells people what each resource pool uses, and how its entitlement came about: in numbers, and in
// sentences with all the numbers that led to it and what would change it.
package explanation

import (
	"starling/cluster"
	"starling/schedule/entitle"
	"starling/terms"
)

// Pools explains all pools at one index.
type Pools struct {
	in     *entitle.Input
	traces []entitle.Trace
	// held and asked are those of each pool, with all that is below it.
	held, asked []terms.Work
	// names tells which pools are named beside the one that is explained and those above it; nil for all.
	names func(terms.PoolPath) bool
}

// Of explains the pools of a value.
func Of(s *cluster.State) *Pools { return New(entitle.Of(s)) }

// New explains the pools by what entitlements depend on.
func New(in *entitle.Input) *Pools {
	b := &Pools{
		in: in, traces: entitle.Traces(in), held: make([]terms.Work, len(in.Pools)), asked: make([]terms.Work, len(in.Pools)),
	}
	for i := len(in.Pools) - 1; i >= 0; i-- {
		p := &in.Pools[i]
		add(&b.held[i], &p.Allocated)
		add(&b.asked[i], &p.Demand)
		if p.Parent >= 0 {
			add(&b.held[p.Parent], &b.held[i])
			add(&b.asked[p.Parent], &b.asked[i])
		}
	}
	return b
}

// For returns the same for somebody who may see some pools alone: no others are named but those above.
func (b *Pools) For(sees func(terms.PoolPath) bool) *Pools {
	b.names = sees
	return b
}

func add(to, more *terms.Work) {
	for k := range terms.AmountCount {
		to.NonSlack[k] += more.NonSlack[k]
		to.Slack[k] += more.Slack[k]
		to.NonPreemptible[k] += more.NonPreemptible[k]
		to.Controller[k] += more.Controller[k]
	}
}

// Use is what a pool, with all that is below it, uses and may use of one kind.
type Use struct {
	// Held is held by its jobs, Asked waits. Neither counts revocable work of overcommitted kinds, which is beyond every
	// entitlement.
	Held, Asked int64
	// SlackHeld and SlackAsked are those of revocable work.
	SlackHeld, SlackAsked int64
	// Entitled is what it may use, SlackEntitled the part for revocable work, or what that may have beyond.
	Entitled, SlackEntitled int64
	// Borrowed is held beyond the reservation. Lent is what of the reservation others may use, as it is idle.
	Borrowed, Lent int64
}

// Use returns what a pool uses of a kind.
func (b *Pools) Use(number int, k terms.Kind) Use {
	t, held, asked := &b.traces[number], &b.held[number], &b.asked[number]
	u := Use{
		Held: held.NonSlack[k], Asked: asked.NonSlack[k], SlackHeld: held.Slack[k], SlackAsked: asked.Slack[k],
		Entitled: t.Total[k], SlackEntitled: t.Slack[k],
	}
	if !k.Overcommitted() {
		u.Held, u.Asked = u.Held+u.SlackHeld, u.Asked+u.SlackAsked
	}
	reservation := b.in.Pools[number].Spec.Quotas[k].Reservation
	u.Borrowed = max(u.Held-reservation, 0)
	u.Lent = max(reservation-t.Short[k]-max(u.Entitled, u.Held), 0)
	return u
}

// Trace returns how the entitlement of a pool came about.
func (b *Pools) Trace(number int) *entitle.Trace { return &b.traces[number] }

// Divided returns what is divided among a pool and its siblings: what its parent is entitled to, or the capacity.
func (b *Pools) Divided(number int, k terms.Kind) int64 {
	if parent := b.in.Pools[number].Parent; parent >= 0 {
		return b.traces[parent].Total[k]
	}
	return b.in.Capacity[k]
}

// Siblings returns all pools with the same parent as one, itself among them.
func (b *Pools) Siblings(number int) []int {
	var all []int
	for i := range b.in.Pools {
		if max(b.in.Pools[i].Parent, -1) == max(b.in.Pools[number].Parent, -1) {
			all = append(all, i)
		}
	}
	return all
}

// Leaf tells whether nothing is below a pool.
func (b *Pools) Leaf(number int) bool {
	return number+1 == len(b.in.Pools) || b.in.Pools[number+1].Parent != number
}

// Matters tells whether there is anything to say of a kind: the pool may have some, or asks for some.
func (b *Pools) Matters(number int, k terms.Kind) bool {
	u := b.Use(number, k)
	return b.in.Capacity[k]+u.Held+u.Asked+u.SlackHeld+u.SlackAsked+b.in.Pools[number].Spec.Quotas[k].Reservation > 0
}
