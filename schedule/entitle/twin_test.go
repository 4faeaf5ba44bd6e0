package entitle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/terms"
)

// drops is a multiple of all numbers up to 12: a unit that is cut into so many drops can be divided among any weights
// with that sum.
const drops = 27720

// vessel is one of those that the twin pours into, drop by drop.
type vessel struct{ weight, most, level int64 }

// apportionSlowly divides an amount like apportion: each vessel with room gets as many drops as its weight, again and
// again. Then the broken units go to the fullest of them. Sums of weights are at most 12.
func apportionSlowly(amount int64, vessels []vessel) (got []int64, left int64) {
	water := amount * drops
	for {
		weights := int64(0)
		for _, v := range vessels {
			if v.level < v.most*drops {
				weights += v.weight
			}
		}
		if weights == 0 {
			break
		}
		if water < weights {
			break
		}
		for i := range vessels {
			if v := &vessels[i]; v.level < v.most*drops {
				v.level += v.weight
				water -= v.weight
			}
		}
	}
	left = water / drops
	broken := int64(0)
	got = make([]int64, len(vessels))
	for i, v := range vessels {
		got[i] = v.level / drops
		broken += v.level % drops
	}
	for ; broken > 0; broken -= drops {
		fullest := 0
		for i, v := range vessels {
			if v.level%drops > vessels[fullest].level%drops {
				fullest = i
			}
		}
		vessels[fullest].level = 0
		got[fullest]++
	}
	return got, left
}

// twin works out the entitlements of one kind as the package comment says, without any of its code.
type twin struct {
	in   *Input
	kind terms.Kind
	// total and slack are the results.
	total, slack []int64
}

func (w *twin) children(of int) (all []int) {
	for i, p := range w.in.Pools {
		if p.Parent == of {
			all = append(all, i)
		}
	}
	return all
}

func (w *twin) quota(i int) *terms.Quota { return &w.in.Pools[i].Spec.Quotas[w.kind] }

func (w *twin) slackLimit(i int) int64 {
	return w.quota(i).Reservation * int64(w.in.Pools[i].Spec.SlackLimit) / 100
}

// needs returns what other work and what revocable work needs below a pool.
func (w *twin) needs(i int) (nonSlack, slack int64) {
	p, q := &w.in.Pools[i], w.quota(i)
	children := w.children(i)
	for _, c := range children {
		a, b := w.needs(c)
		nonSlack, slack = nonSlack+a, slack+b
	}
	if len(children) == 0 {
		held, asked := &p.Allocated, &p.Demand
		stuck := int64(0) // waits behind what is firm or the controller limit
		for free := range asked.NonPreemptible[w.kind] {
			if held.NonPreemptible[w.kind]+free >= w.firm(i) {
				stuck = asked.NonPreemptible[w.kind] - free
				break
			}
		}
		if p.Spec.ControllerLimit != terms.NoPercent {
			most := q.Reservation * int64(p.Spec.ControllerLimit) / 100
			for free := range asked.Controller[w.kind] {
				if held.Controller[w.kind]+free >= most {
					stuck = max(stuck, asked.Controller[w.kind]-free)
					break
				}
			}
		}
		nonSlack = held.NonSlack[w.kind] + asked.NonSlack[w.kind] - stuck
		slack = held.Slack[w.kind] + asked.Slack[w.kind]
	}
	if w.kind.Overcommitted() {
		slack = 0
	}
	nonSlack = min(nonSlack, q.Limit)
	return nonSlack, min(slack, w.slackLimit(i), q.Limit-nonSlack)
}

// firm returns the most that work of a pool may hold which is never preempted.
func (w *twin) firm(i int) int64 {
	if q := w.quota(i); q.Reservation > 0 {
		return q.Reservation
	}
	reserved, held := int64(0), int64(0)
	for n, p := range w.in.Pools {
		if p.Parent < 0 {
			reserved += w.quota(n).Reservation
		}
		if w.quota(n).Reservation == 0 {
			held += p.Allocated.NonPreemptible[w.kind]
		}
	}
	return w.in.Pools[i].Allocated.NonPreemptible[w.kind] + max(w.in.Capacity[w.kind]-reserved-held, 0)
}

// claim returns what a pool needs, and with that what static reservations keep idle.
func (w *twin) claim(i int) (need, claim int64) {
	q := w.quota(i)
	a, b := w.needs(i)
	need = a + b
	idle, uncovered := int64(0), q.Reservation
	for _, c := range w.children(i) {
		n, k := w.claim(c)
		idle += k - n
		uncovered -= min(n, w.quota(c).Reservation)
	}
	claim = min(q.Limit, need+min(idle, max(uncovered, 0)))
	if q.Static {
		claim = max(claim, q.Reservation)
	}
	return need, claim
}

// give divides an amount among the children of a pool, and so on down.
func (w *twin) give(of int, amount int64) {
	children := w.children(of)
	stage := func(terms func(i int) (weight, most int64)) {
		var vessels []vessel
		for _, c := range children {
			weight, most := terms(c)
			vessels = append(vessels, vessel{weight, min(most*min(weight, 1), amount), 0})
		}
		var got []int64
		got, amount = apportionSlowly(amount, vessels)
		for n, c := range children {
			w.total[c] += got[n]
		}
	}
	stage(func(i int) (int64, int64) {
		_, claim := w.claim(i)
		return w.quota(i).Reservation, min(claim, w.quota(i).Reservation)
	})
	stage(func(i int) (int64, int64) {
		_, claim := w.claim(i)
		return w.quota(i).Share, claim - w.total[i]
	})
	stage(func(i int) (int64, int64) { return w.quota(i).Share, w.quota(i).Limit - w.total[i] })
	for _, c := range children {
		w.give(c, w.total[c])
	}
}

// fits returns how much slack the pools below one could use.
func (w *twin) fits(i int) int64 {
	children := w.children(i)
	if len(children) == 0 {
		nonSlack, slack := w.needs(i)
		return min(max(w.total[i]-nonSlack, 0), slack)
	}
	sum := int64(0)
	for _, c := range children {
		sum += w.fits(c)
	}
	return min(sum, w.slackLimit(i))
}

// held returns the slack that the jobs below a pool hold, and what they ask for.
func (w *twin) held(i int) (held, asked int64) {
	children := w.children(i)
	if len(children) == 0 {
		return w.in.Pools[i].Allocated.Slack[w.kind], w.in.Pools[i].Demand.Slack[w.kind]
	}
	for _, c := range children {
		a, b := w.held(c)
		held, asked = held+a, asked+b
	}
	return held, asked
}

// giveSlack divides the slack of a pool among its children, and so on down.
func (w *twin) giveSlack(of int, amount int64) {
	children := w.children(of)
	stage := func(terms func(i int) (weight, most int64)) {
		var vessels []vessel
		for _, c := range children {
			weight, most := terms(c)
			vessels = append(vessels, vessel{weight, min(most*min(weight, 1), amount), 0})
		}
		var got []int64
		got, amount = apportionSlowly(amount, vessels)
		for n, c := range children {
			w.slack[c] += got[n]
		}
	}
	if w.kind.Overcommitted() {
		stage(func(i int) (int64, int64) { held, _ := w.held(i); return w.quota(i).Share, held })
		stage(func(i int) (int64, int64) { _, asked := w.held(i); return w.quota(i).Share, asked })
		stage(func(i int) (int64, int64) { return w.quota(i).Share, amount })
	} else {
		stage(func(i int) (int64, int64) { return w.slackLimit(i), w.fits(i) })
	}
	for _, c := range children {
		w.giveSlack(c, w.slack[c])
	}
}

// slowly returns what Entitlements should.
func slowly(in *Input) []Entitlement {
	all := make([]Entitlement, len(in.Pools))
	for k := range terms.AmountCount {
		w := &twin{in, k, make([]int64, len(in.Pools)), make([]int64, len(in.Pools))}
		w.give(-1, in.Capacity[k])
		slack := int64(100)
		if k.Overcommitted() {
			slack = in.Slack[k]
		}
		w.giveSlack(-1, slack)
		for i := range all {
			all[i].Firm[k] = w.firm(i)
			all[i].Total[k], all[i].NonSlack[k], all[i].Slack[k] = w.total[i], w.total[i], w.slack[i]
			if !k.Overcommitted() {
				all[i].NonSlack[k] -= w.slack[i]
			}
		}
	}
	return all
}

// small returns a random input with numbers that the twin can divide, of two kinds; valid trees only if asked.
func small(rng *rand.Rand, valid bool) *Input {
	in := &Input{}
	most := int64(3)
	for _, k := range []terms.Kind{terms.CPU, terms.Memory} {
		in.Capacity[k], in.Slack[k] = rng.Int64N(16), rng.Int64N(8)
	}
	children := map[int]int{}
	for i := range 1 + rng.IntN(7) {
		parent := rng.IntN(i+1) - 1
		for children[parent] == 4 {
			parent = rng.IntN(i+1) - 1
		}
		children[parent]++
		spec := terms.NewPool(terms.PoolPath(fmt.Sprint("p", i)))
		spec.SlackLimit = terms.Percent(rng.IntN(3) * 50)
		if rng.IntN(3) == 0 {
			spec.ControllerLimit = terms.Percent(rng.IntN(3) * 50)
		}
		for k := range spec.Quotas[:2] {
			q := &spec.Quotas[k]
			room := most
			if valid && parent >= 0 {
				room = in.Pools[parent].Spec.Quotas[k].Reservation
				for _, p := range in.Pools {
					if p.Parent == parent {
						room -= p.Spec.Quotas[k].Reservation
					}
				}
			}
			q.Reservation, q.Share = rng.Int64N(room+1), min(rng.Int64N(5), 3)
			if q.Static = rng.IntN(4) == 0; rng.IntN(2) == 0 {
				q.Limit = q.Reservation + rng.Int64N(8)
			}
		}
		in.Pools = append(in.Pools, Pool{Parent: parent, Spec: &spec})
	}
	for i := range in.Pools {
		if !slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Parent == i }) {
			in.Pools[i].Allocated, in.Pools[i].Demand = work(rng), work(rng)
		}
	}
	return in
}

func work(rng *rand.Rand) (w terms.Work) {
	for k := range w.NonSlack[:2] {
		if rng.IntN(2) == 0 {
			w.NonSlack[k] = rng.Int64N(8)
			w.NonPreemptible[k], w.Controller[k] = rng.Int64N(w.NonSlack[k]+1), rng.Int64N(w.NonSlack[k]+1)
		}
		w.Slack[k] = max(rng.Int64N(6)-2, 0)
	}
	return w
}

func TestTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		in := small(rng, false)
		got, want := Entitlements(in), slowly(in)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("pool %d has %v, want %v", i, got[i], want[i])
			}
		}
		if t.Failed() {
			t.Fatal(show(in))
		}
	}
}

// show returns an input as people read it.
func show(in *Input) string {
	text := fmt.Sprintf("capacity %v, slack %v\n", in.Capacity, in.Slack)
	for i, p := range in.Pools {
		text += fmt.Sprintf("pool %d below %d: %+v slack limit %d controller limit %d\n\tallocated %+v\n\tdemand %+v\n",
			i, p.Parent, p.Spec.Quotas[:2], p.Spec.SlackLimit, p.Spec.ControllerLimit, p.Allocated, p.Demand)
	}
	return text
}
