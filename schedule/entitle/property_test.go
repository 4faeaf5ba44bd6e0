package entitle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/terms"
)

// large returns a random input with amounts of any size, whose tree keeps to the rules.
func large(rng *rand.Rand) *Input {
	in := &Input{}
	amount := func() int64 { return rng.Int64N(1 << (1 + rng.IntN(50))) }
	for k := range in.Capacity {
		in.Capacity[k], in.Slack[k] = amount(), amount()
	}
	below := make([]terms.Amounts, 40)
	for i := range 1 + rng.IntN(len(below)) {
		spec := terms.NewPool("p")
		spec.SlackLimit = terms.Percent(rng.IntN(101))
		parent := rng.IntN(i+1) - 1
		for k := range spec.Quotas {
			q := &spec.Quotas[k]
			*q = terms.Quota{Reservation: amount(), Limit: terms.Unlimited, Share: rng.Int64N(4), Static: rng.IntN(5) == 0}
			if parent >= 0 {
				q.Reservation = min(q.Reservation, in.Pools[parent].Spec.Quotas[k].Reservation-below[parent][k])
				below[parent][k] += q.Reservation
			}
			if rng.IntN(2) == 0 {
				q.Limit = q.Reservation + amount()
			}
		}
		in.Pools = append(in.Pools, Pool{Parent: parent, Spec: &spec})
	}
	for i := range in.Pools {
		if !slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Parent == i }) {
			for k := range terms.AmountCount {
				p := &in.Pools[i]
				p.Demand.NonSlack[k], p.Allocated.NonSlack[k] = amount(), amount()
				p.Demand.Slack[k], p.Allocated.Slack[k] = amount(), amount()
				p.Demand.NonPreemptible[k] = rng.Int64N(p.Demand.NonSlack[k] + 1)
			}
		}
	}
	return in
}

// TestProperties checks what holds of every division.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		in := large(rng)
		traces := Traces(in)
		for i, e := range Entitlements(in) {
			if traces[i].Entitlement != e {
				t.Errorf("pool %d has %v, with its trace %v", i, e, traces[i].Entitlement)
			}
		}
		for k := range terms.AmountCount {
			for parent := -1; parent < len(in.Pools); parent++ {
				division{in, traces, k, parent}.check(t)
			}
		}
		if t.Failed() {
			t.Fatal(show(in))
		}
	}
}

// division is what became of one kind in one pool.
type division struct {
	in     *Input
	traces []Trace
	k      terms.Kind
	parent int
}

func (d division) check(t *testing.T) {
	k := d.k
	given, slackGiven := d.given()
	sum, slackSum, leaf := int64(0), int64(0), true
	starving, beyond, room := false, false, false
	for i, p := range d.in.Pools {
		if p.Parent != d.parent {
			continue
		}
		e, q := &d.traces[i], &p.Spec.Quotas[k]
		leaf = false
		sum, slackSum = sum+e.Total[k], slackSum+e.Slack[k]
		starving = starving || e.Total[k] < e.Claim[k] && q.Share > 0
		beyond = beyond || e.Total[k] > e.Claim[k]
		room = room || e.Total[k] < q.Limit && q.Share > 0
		d.checkPool(t, i, q)
	}
	switch {
	case leaf:
		return
	case sum > given || room && sum < given:
		t.Errorf("the pools below %d have %d %s of %d", d.parent, sum, k, given)
	case starving && beyond:
		t.Errorf("below %d a pool has more %s than it claims while another claims more than it has", d.parent, k)
	case slackSum > slackGiven:
		t.Errorf("the pools below %d have slack %d %s of %d", d.parent, slackSum, k, slackGiven)
	}
}

// given returns what there is to divide.
func (d division) given() (total, slack int64) {
	k := d.k
	if d.parent >= 0 {
		e, s := &d.traces[d.parent], d.in.Pools[d.parent].Spec
		if total, slack = e.Total[k], e.Slack[k]; !k.Overcommitted() {
			slack = min(slack, s.SlackMost(k))
		}
		return total, slack
	}
	if !k.Overcommitted() {
		return d.in.Capacity[k], terms.Unlimited
	}
	return d.in.Capacity[k], d.in.Slack[k]
}

func (d division) checkPool(t *testing.T, number int, q *terms.Quota) {
	e, k := &d.traces[number], d.k
	if e.Total[k] > q.Limit {
		t.Errorf("pool %d has %d %s, above its limit %d", number, e.Total[k], k, q.Limit)
	}
	if e.Reserved[k]+e.Shared[k]+e.Left[k] != e.Total[k] {
		t.Errorf("pool %d: the trace of %s, %v, does not add up", number, k, *e)
	}
	if e.Short[k] > 0 && (e.Shared[k] > 0 || e.Left[k] > 0) {
		t.Errorf("pool %d lacks reserved %s and has unreserved", number, k)
	}
}

// TestMoreReserved checks that a pool which reserves more gets no less, but for the unit that did not divide; and but
// for work that is never preempted in a pool that begins to reserve, which counts against that from then on and no more
// against what nobody reserves.
func TestMoreReserved(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		in := small(rng, true)
		i := rng.IntN(len(in.Pools))
		before := Entitlements(in)[i].Total
		begins := [terms.AmountCount]bool{}
		for k := range in.Pools[i].Spec.Quotas {
			q, p := &in.Pools[i].Spec.Quotas[k], &in.Pools[i]
			begins[k] = q.Reservation == 0 && p.Allocated.NonPreemptible[k]+p.Demand.NonPreemptible[k] > 0
			q.Reservation = min(q.Reservation+1, q.Limit)
		}
		for k, after := range Entitlements(in)[i].Total {
			if after < before[k]-1 && !begins[k] {
				t.Fatalf("pool %d had %d and has %d of kind %d\n%s", i, before[k], after, k, show(in))
			}
		}
	}
}

// TestOrder checks that the order of siblings decides over nothing but the units that do not divide: one a stage.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		in := large(rng)
		for i := range in.Pools {
			in.Pools[i].Parent = -1
		}
		before := Entitlements(in)
		turned := *in
		turned.Pools = slices.Clone(in.Pools)
		slices.Reverse(turned.Pools)
		after := Entitlements(&turned)
		slices.Reverse(after)
		for i := range before {
			for k := range before[i].Total {
				if moved := before[i].Total[k] - after[i].Total[k]; moved < -3 || moved > 3 {
					t.Fatalf("pool %d had %d, turned round %d\n%s", i, before[i].Total[k], after[i].Total[k], show(in))
				}
			}
		}
	}
}

// BenchmarkEntitlements tells what a whole computation costs: flat trees, and trees of ten pools below each.
func BenchmarkEntitlements(b *testing.B) {
	for _, pools := range []int{10, 100, 1000} {
		for _, width := range slices.Compact([]int{10, pools}) {
			in := &Input{Capacity: terms.Amounts{1e9, 1 << 50, 1 << 55, 1e6}, Slack: terms.Amounts{1e8}}
			for i := range pools {
				spec := terms.NewPool("p")
				p := Pool{Parent: i/width - 1, Spec: &spec}
				if width == pools {
					p.Parent = -1
				}
				for k := range spec.Quotas {
					spec.Quotas[k] = terms.Quota{Reservation: in.Capacity[k] / int64(2*pools), Limit: terms.Unlimited,
						Share: int64(1 + i%3)}
					p.Demand.NonSlack[k] = in.Capacity[k] / int64(pools) * int64(i*7919%4)
				}
				in.Pools = append(in.Pools, p)
			}
			b.Run(fmt.Sprintf("pools=%d/width=%d", pools, width), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Entitlements(in)
				}
			})
		}
	}
}
