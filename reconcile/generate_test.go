package reconcile_test

import (
	"math/rand/v2"

	"starling/reconcile"
	"starling/terms"
)

const now terms.Time = 1_000_000_000

// generator draws tasks with several candidates in every slot and all marks set. It keeps to what can be: orders are
// unique in a slot, and what is recorded of an allocation does not contradict itself.
type generator struct {
	*rand.Rand
	own *terms.Task
}

// seeded returns the generator of one case.
func seeded(seed uint64) *generator { return &generator{Rand: rand.New(rand.NewPCG(seed, 1))} }

// one tells whether one in n happens.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

// before returns a time in the past, now and then in the future.
func (g *generator) before() terms.Time { return now + terms.Time(g.IntN(80_000)-70_000) }

func (g *generator) spec() *terms.Task {
	spec := &terms.Task{StopGraceMillis: uint32(g.IntN(10_000))}
	if !g.one(4) {
		spec.Reschedule = terms.Reschedule{
			AttemptsMax: uint32(g.IntN(3)), IntervalMillis: uint32(g.IntN(100_000)), DelayMillis: uint32(g.IntN(20_000)),
			DelayMaxMillis: uint32(20_000 + g.IntN(2)*20_000), Growth: terms.Growth(g.IntN(3)),
		}
		if g.one(3) {
			spec.Reschedule.AttemptsMax = terms.RestartsUnlimited
		}
	}
	switch g.IntN(4) {
	case 0:
		spec.Disconnect.StopAfterMillis = uint32(g.IntN(60_000))
	case 1, 2:
		spec.Disconnect.LostAfterMillis = uint32(1 + g.IntN(60_000))
	}
	spec.Disconnect.Wait, spec.Disconnect.Keep = g.one(3), terms.Survivor(g.IntN(4))
	return spec
}

func (g *generator) task() reconcile.Task {
	t := reconcile.Task{
		Now: now, Version: 3, Count: uint32(g.IntN(6)), Batch: g.one(3), Spec: g.spec(), Policy: &terms.UpdatePolicy{},
		Soon: terms.Time(g.IntN(2) * reconcile.SoonMillis),
	}
	g.own = g.spec()
	if g.one(3) {
		return t
	}
	if !g.one(4) {
		t.Policy = &terms.UpdatePolicy{BatchSize: uint32(g.IntN(4)), Canaries: uint32(g.IntN(4))}
	}
	t.Update = reconcile.Update{
		ID: 7, State: reconcile.UpdateState(g.IntN(3)), Total: t.Count, Canaries: uint32(g.IntN(3)), Promoted: g.one(2),
	}
	t.Update.Trying = t.Update.Canaries > 0 && !t.Update.Promoted
	return t
}

// slots draws the slots of a task, and one beyond its count.
func (g *generator) slots(t *reconcile.Task) []reconcile.Slot {
	slots := make([]reconcile.Slot, t.Count+1)
	for i := range slots {
		slots[i].Index, slots[i].Closed = uint32(i), g.one(10)
		most := g.IntN(2 + g.IntN(4))
		if slots[i].Closed {
			most = min(most, 1) // a node has one
		}
		for order := range most {
			slots[i].Candidates = append(slots[i].Candidates, g.candidate(t, terms.Index(order+1)))
		}
	}
	return slots
}

func (g *generator) candidate(t *reconcile.Task, order terms.Index) reconcile.Candidate {
	c := reconcile.Candidate{
		Order: order, Version: 3, Client: reconcile.Client(1 + g.IntN(6)), FailedAt: g.before(), Started: g.before(),
		Health: reconcile.Health(g.IntN(3)), Migrate: g.one(6),
	}
	if g.one(3) {
		c.Client = reconcile.RunningClient
	}
	if g.one(4) {
		c.Version, c.Outdated = 2, g.one(2)
	}
	if g.one(2) {
		c.Node = reconcile.NodeState(g.IntN(3))
	}
	if g.one(3) {
		c.Own = g.own
	}
	g.update(t, &c)
	g.history(&c)
	return c
}

// update draws whether an update placed the candidate.
func (g *generator) update(t *reconcile.Task, c *reconcile.Candidate) {
	if g.one(2) || t.Update.ID == 0 {
		return
	}
	c.Update, c.Version, c.Outdated = t.Update.ID, t.Version, false
	if g.one(3) && t.Update.Canaries > 0 {
		c.CanaryOf = c.Update
	}
}

// history draws what was recorded of the candidate.
func (g *generator) history(c *reconcile.Candidate) {
	switch {
	case c.Client == reconcile.UnknownClient:
		c.UnknownSince, c.Unknown = g.before(), true
	case g.one(5):
		c.UnknownSince, c.Unknown = g.before(), g.one(2)
	}
	c.Told, c.Due = c.Client == reconcile.LostClient || g.one(6), g.one(8)
	c.Again, c.Final = c.Told && g.one(2), c.Client == reconcile.FailedClient && g.one(8)
	for range g.IntN(3) {
		c.Attempts = append(c.Attempts, reconcile.Attempt{At: g.before(), DelayMillis: uint32(g.IntN(20_000))})
	}
}
