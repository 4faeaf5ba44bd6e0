package entitle

import (
	"slices"

	"starling/terms"
)

// stage is one pouring of what a pool has into those directly below it.
type stage uint8

const (
	byReservation stage = iota
	byShare
	leftOver
	slackHeld
	slackAsked
	slackLeftOver
	slackWithin
)

// terms returns a pool's weight in a stage, and the most it takes.
func (st stage) terms(a *account, spec *terms.Pool, k terms.Kind) (weight, most int64) {
	q := &spec.Quotas[k]
	switch st {
	case byReservation:
		return q.Reservation, min(a.claim[k], q.Reservation)
	case byShare:
		return q.Share, a.claim[k] - a.total[k]
	case leftOver:
		return q.Share, q.Limit - a.total[k]
	case slackHeld:
		return q.Share, a.slackHeld[k]
	case slackAsked:
		return q.Share, a.slackAsked[k]
	case slackLeftOver:
		return q.Share, terms.Unlimited
	}
	return spec.SlackMost(k), a.usable[k]
}

// divide goes down the tree, first with the entitlements, then with the slack.
func (l *ledger) divide() {
	for i := range l.accounts {
		if l.accounts[i].first == 0 {
			continue // nothing is below a leaf
		}
		for k := range terms.AmountCount {
			left := l.stage(byReservation, i, k, l.accounts[i].total[k])
			left = l.stage(byShare, i, k, left)
			l.stage(leftOver, i, k, left)
		}
	}
	for i := len(l.in.Pools); i > 0; i-- {
		l.fit(i)
	}
	for i := range l.accounts {
		if l.accounts[i].first == 0 {
			continue
		}
		for k := range terms.AmountCount {
			if !k.Overcommitted() {
				l.stage(slackWithin, i, k, l.accounts[i].given[k])
				continue
			}
			left := l.stage(slackHeld, i, k, l.accounts[i].given[k])
			left = l.stage(slackAsked, i, k, left)
			l.stage(slackLeftOver, i, k, left)
		}
	}
}

// stage pours an amount into the accounts directly below one, and returns what is left of it.
func (l *ledger) stage(st stage, below int, k terms.Kind, amount int64) int64 {
	if amount == 0 {
		return 0
	}
	parts := l.parts[:0]
	for i := l.accounts[below].first; i > 0; i = l.accounts[i].next {
		if weight, most := st.terms(&l.accounts[i], l.in.Pools[i-1].Spec, k); weight > 0 && most > 0 {
			parts = append(parts, part{weight: weight, most: most, number: i})
		}
	}
	left := apportion(amount, parts)
	for _, p := range parts {
		if st >= slackHeld {
			l.accounts[p.number].given[k] += p.got
		} else {
			l.accounts[p.number].total[k] += p.got
		}
		if l.traces != nil {
			l.traces[p.number-1].note(st, k, p.got)
		}
	}
	return left
}

// fit computes how much slack fits into a pool's entitlement, beside what other work needs of it.
func (l *ledger) fit(number int) {
	a, p := &l.accounts[number], &l.in.Pools[number-1]
	parent := &l.accounts[max(p.Parent, -1)+1]
	for k := range a.usable {
		if a.first == 0 {
			a.usable[k] = min(max(a.total[k]-a.nonSlack[k], 0), a.slack[k])
		}
		a.usable[k] = min(a.usable[k], p.Spec.SlackMost(terms.Kind(k)))
		parent.usable[k] = plus(parent.usable[k], a.usable[k])
	}
}

// entitlements returns the result, in memory that is used again.
func (l *ledger) entitlements(all []Entitlement) []Entitlement {
	all = slices.Grow(all[:0], len(l.in.Pools))[:len(l.in.Pools)]
	for i := range all {
		a, e := &l.accounts[i+1], &all[i]
		e.Total, e.NonSlack, e.Slack = a.total, a.total, a.given
		for k := range e.NonSlack {
			e.Firm[k] = l.firm(&l.in.Pools[i], k)
			if !terms.Kind(k).Overcommitted() {
				e.NonSlack[k] -= e.Slack[k]
			}
		}
	}
	return all
}
