package entitle

import (
	"slices"

	"starling/terms"
)

// Input is all that entitlements depend on. No amount is below 0 or above terms.Unlimited.
type Input struct {
	// Capacity is what the cluster has, Slack what revocable work may have beyond it, of overcommitted kinds.
	Capacity, Slack terms.Amounts
	// Pools are the tree, which keeps to the rules of package pool, parents first.
	Pools []Pool
}

// Pool is one pool with what its jobs hold and ask for.
type Pool struct {
	// Parent is the number of the parent, negative at the top.
	Parent int
	Spec   *terms.Pool
	// Allocated is held by jobs, Demand waits to be admitted. Only leaves have any.
	Allocated, Demand terms.Work
}

// Entitlement is what a pool may use.
type Entitlement struct {
	// Total is NonSlack and Slack together, but of overcommitted kinds, whose slack is beyond it.
	Total, NonSlack, Slack terms.Amounts
	// Firm is the most that work may hold which is never preempted: what the pool reserves, and of a kind of which that is
	// nothing what it holds already, and what is left of what no pool reserves.
	Firm terms.Amounts
}

// Entitlements returns what each pool may use, in the order of the input.
func Entitlements(in *Input) []Entitlement {
	l := newLedger(in, nil)
	l.divide()
	return l.entitlements(nil)
}

// ledger is the tree while it is computed. Account 0 is the root's, account i+1 that of pool i.
type ledger struct {
	in       *Input
	accounts []account
	parts    []part
	// unreserved is what no pool reserves, less what work that is never preempted holds of it.
	unreserved terms.Amounts
	// traces has one row for each pool, or none if nobody asked.
	traces []Trace
}

// account is what is known of a pool.
type account struct {
	// first is the first account directly below, next the next one with the same parent; 0 is none.
	first, next int
	// nonSlack and slack are needed, claim is that and what static reservations keep idle.
	nonSlack, slack, claim terms.Amounts
	// used is the part of the need that the reservation covers, idle what static reservations below keep.
	used, idle terms.Amounts
	// slackHeld and slackAsked are wanted of the overcommitted kinds.
	slackHeld, slackAsked terms.Amounts
	// total is the entitlement, usable the slack that would fit into it, given the slack.
	total, usable, given terms.Amounts
}

func newLedger(in *Input, traces []Trace) *ledger {
	l := new(ledger)
	l.reset(in, traces)
	return l
}

// reset goes up the tree and learns what each pool needs.
func (l *ledger) reset(in *Input, traces []Trace) {
	*l = ledger{in: in, traces: traces, accounts: slices.Grow(l.accounts[:0], len(in.Pools)+1)[:len(in.Pools)+1],
		parts: slices.Grow(l.parts[:0], len(in.Pools))}
	clear(l.accounts)
	l.unreserved = unreserved(in)
	for i := len(in.Pools); i > 0; i-- {
		p, a := &in.Pools[i-1], &l.accounts[i]
		parent := &l.accounts[max(p.Parent, -1)+1]
		a.next, parent.first = parent.first, i
		for k := range a.claim {
			if a.first == 0 {
				a.ask(p, terms.Kind(k), l.firm(p, k))
			}
			if l.traces != nil {
				l.traces[i-1].Asked[k] = plus(a.nonSlack[k], a.slack[k])
			}
			a.need(p.Spec, terms.Kind(k))
			parent.add(a, k)
		}
	}
	for k := range in.Capacity {
		root := &l.accounts[0]
		root.total[k], root.given[k] = min(in.Capacity[k], terms.BytesMax), terms.Unlimited
		if terms.Kind(k).Overcommitted() {
			root.given[k] = min(in.Slack[k], terms.BytesMax)
		}
	}
}

// unreserved returns what no pool reserves and no work holds that is never preempted.
func unreserved(in *Input) terms.Amounts {
	left := in.Capacity
	for i := range in.Pools {
		p := &in.Pools[i]
		for k, q := range p.Spec.Quotas {
			if p.Parent < 0 {
				left[k] -= q.Reservation
			}
			if q.Reservation == 0 {
				left[k] -= p.Allocated.NonPreemptible[k]
			}
		}
	}
	for k := range left {
		left[k] = max(left[k], 0)
	}
	return left
}

// firm returns the most of a kind that work of a pool may hold which is never preempted.
func (l *ledger) firm(p *Pool, k int) int64 {
	if reserved := p.Spec.Quotas[k].Reservation; reserved > 0 {
		return reserved
	}
	return p.Allocated.NonPreemptible[k] + l.unreserved[k]
}

// TakeFirm notes in the entitlements of the pools that a leaf holds so much more that is never preempted: of what no
// pool reserves so much less is left for others.
func TakeFirm(specs []terms.Pool, all []Entitlement, leaf int, more terms.Amounts) {
	for k, taken := range more {
		if taken == 0 || specs[leaf].Quotas[k].Reservation > 0 {
			continue
		}
		for i := range all {
			if i != leaf && specs[i].Quotas[k].Reservation == 0 {
				all[i].Firm[k] -= taken
			}
		}
	}
}

// ask notes what a leaf's jobs hold and ask for and could use. Work that waits behind a bound of its own asks for
// nothing: it would keep idle what others need.
func (a *account) ask(p *Pool, k terms.Kind, firm int64) {
	held, asked := &p.Allocated, &p.Demand
	beyond := max(
		asked.NonPreemptible[k]-max(firm-held.NonPreemptible[k], 0),
		asked.Controller[k]-max(p.Spec.ControllerMost(k)-held.Controller[k], 0), 0)
	a.nonSlack[k] = plus(held.NonSlack[k], max(asked.NonSlack[k]-beyond, 0))
	if k.Overcommitted() {
		a.slackHeld[k], a.slackAsked[k] = held.Slack[k], asked.Slack[k]
	} else {
		a.slack[k] = plus(held.Slack[k], asked.Slack[k])
	}
}

// need cuts what is asked for at the limits, and adds what the pool keeps although it is idle.
func (a *account) need(spec *terms.Pool, k terms.Kind) {
	q := &spec.Quotas[k]
	a.nonSlack[k] = min(a.nonSlack[k], q.Limit)
	a.slack[k] = min(a.slack[k], spec.SlackMost(k), q.Limit-a.nonSlack[k])
	need := a.nonSlack[k] + a.slack[k]
	idle := min(a.idle[k], max(q.Reservation-a.used[k], 0))
	a.claim[k] = min(need+idle, q.Limit)
	if q.Static {
		a.claim[k] = max(a.claim[k], q.Reservation)
	}
	a.used[k] = min(need, q.Reservation)
	a.idle[k] = a.claim[k] - need
}

// add notes what a child needs.
func (a *account) add(child *account, k int) {
	a.nonSlack[k] = plus(a.nonSlack[k], child.nonSlack[k])
	a.slack[k] = plus(a.slack[k], child.slack[k])
	a.used[k] = plus(a.used[k], child.used[k])
	a.idle[k] = plus(a.idle[k], child.idle[k])
	a.slackHeld[k] = plus(a.slackHeld[k], child.slackHeld[k])
	a.slackAsked[k] = plus(a.slackAsked[k], child.slackAsked[k])
}
