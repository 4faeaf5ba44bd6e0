package admission

import (
	"math/rand/v2"
	"testing"

	"starling/terms"
)

// history is a pool in which work ends, one gang after the other, and others wait.
type history struct {
	pool    Pool
	running []Gang
	waiting []Gang
}

func randomGang(rng *rand.Rand, most int64) Gang {
	g := Gang{Count: 1, Revocable: rng.IntN(5) == 0, NonPreemptible: rng.IntN(3) == 0, Controller: rng.IntN(4) == 0}
	for k := range g.Need[:2] {
		g.Need[k] = rng.Int64N(most + 1)
	}
	return g
}

// add adds what a gang holds.
func add(w *terms.Work, g *Gang, times int64) {
	for k, need := range g.Need {
		need *= times
		if g.Revocable {
			w.Slack[k] += need
			continue
		}
		w.NonSlack[k] += need
		if g.NonPreemptible {
			w.NonPreemptible[k] += need
		}
		if g.Controller {
			w.Controller[k] += need
		}
	}
}

func randomHistory(rng *rand.Rand) *history {
	h := &history{}
	for k := range h.pool.Firm[:2] {
		h.pool.Firm[k], h.pool.ControllerLimit[k] = rng.Int64N(30), rng.Int64N(30)
		h.pool.Entitlement.NonSlack[k], h.pool.Entitlement.Slack[k] = rng.Int64N(40), rng.Int64N(20)
	}
	for range rng.IntN(8) {
		g := randomGang(rng, 9)
		if a := New(&h.pool); a.Room(&g) == 1 {
			h.running = append(h.running, g)
			add(&h.pool.Allocated, &g, 1)
			if rng.IntN(4) == 0 {
				h.running = h.running[:len(h.running)-1] // runs until it is stopped
				add(&h.pool.Lasting, &g, 1)
			}
		}
	}
	for range 1 + rng.IntN(8) {
		h.waiting = append(h.waiting, randomGang(rng, 20))
	}
	return h
}

// units are those that run and have not ended.
func (h *history) units(ended int) func() []Unit {
	return func() (all []Unit) {
		for i := range h.running[ended:] {
			u := Unit{}
			add(&u.Work, &h.running[ended+i], 1)
			all = append(all, u)
		}
		return all
	}
}

// pass admits what can be admitted when so many have ended, and returns the awaited ones of the first so many that
// wait. What is admitted never ends.
func (h *history) pass(t *testing.T, admitted []bool, most, ended int) (awaited []int) {
	a := New(&h.pool)
	for i := range h.waiting[:most] {
		g := &h.waiting[i]
		if admitted[i] {
			continue
		}
		if a.Room(g) == 1 {
			admitted[i] = true
			a.Take(g, 1)
			add(&h.pool.Allocated, g, 1)
			continue
		}
		before := a.awaited
		if a.Await(g, h.units(ended)); a.awaited != before {
			awaited = append(awaited, i)
		}
	}
	for k := range h.pool.Allocated.NonSlack {
		w, e := &h.pool.Allocated, &h.pool.Entitlement
		if w.NonSlack[k] > e.NonSlack[k] || w.Slack[k] > e.Slack[k] || w.Controller[k] > h.pool.ControllerLimit[k] ||
			w.NonPreemptible[k] > h.pool.Firm[k] {
			t.Errorf("%+v is allocated in %+v", w, h.pool)
		}
	}
	return awaited
}

// starts plays the history with the first so many that wait, and returns after how many ends each one started.
func (h *history) starts(t *testing.T, most int) (starts []int, awaited []int) {
	kept := *h
	admitted := make([]bool, most)
	starts = make([]int, most)
	for ends := 0; ; ends++ {
		before := append([]bool(nil), admitted...)
		now := kept.pass(t, admitted, most, ends)
		if ends == 0 {
			awaited = now
		}
		for i := range admitted {
			if admitted[i] && !before[i] {
				starts[i] = ends
			} else if !admitted[i] {
				starts[i] = len(h.running) + 1
			}
		}
		if ends == len(h.running) {
			return starts, awaited
		}
		add(&kept.pool.Allocated, &h.running[ends], -1)
	}
}

// TestNobodyIsDelayed checks that the first gang that is awaited starts when it would if nobody stood behind it, by the
// time all is done if nobody stood before it, and that all bounds hold.
func TestNobodyIsDelayed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	waited := 0
	for round := range 20000 {
		h := randomHistory(rng)
		starts, awaited := h.starts(t, len(h.waiting))
		if len(awaited) == 0 {
			continue
		}
		waited++
		first := awaited[0]
		alone, _ := h.starts(t, first+1)
		if starts[first] != alone[first] || first == 0 && starts[0] > len(h.running) {
			t.Errorf("round %d: gang %d starts after %d ends of %d, alone after %d", round, first, starts[first],
				len(h.running), alone[first])
		}
		if t.Failed() {
			t.Fatalf("%+v", h)
		}
	}
	if waited < 1000 {
		t.Errorf("in %d rounds somebody was awaited, want at least 1000", waited)
	}
}

// BenchmarkAdmission goes through a thousand gangs that wait, of which every tenth is admitted.
func BenchmarkAdmission(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 2))
	p := &Pool{}
	for k := range p.Firm {
		p.Entitlement.NonSlack[k], p.Firm[k], p.ControllerLimit[k] = 1000, 500, terms.Unlimited
	}
	waiting := make([]Gang, 1000)
	for i := range waiting {
		waiting[i] = randomGang(rng, 20)
	}
	b.ReportAllocs()
	for b.Loop() {
		a := New(p)
		for i := range waiting {
			g := &waiting[i]
			if n := a.Room(g); n > 0 {
				a.Take(g, n)
			} else {
				a.Await(g, none)
			}
		}
	}
}

// none is a pool in which nothing that runs is known.
func none() []Unit { return nil }
