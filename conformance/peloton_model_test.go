package conformance

import (
	"slices"

	"starling/schedule/entitle"
	"starling/terms"
)

// The differences from Peloton. Each holds for every file; none is about one file or case.
var (
	capacityKnown = &difference{name: "capacity known", reason: "capacity is what the nodes of the value offer: " +
		"no look-up of it can fail, and there are no pools of hosts"}
	grantedTwice = &difference{name: "granted twice",
		reason: "where more is reserved or held than there is, upstream gives it out in full " +
			"and the parts are more than the whole; here it is scaled down"}
	leftOverLost = &difference{name: "left-over lost",
		reason: "what a limit cuts off the left-over is lost upstream; here the others get it"}
	askedInVain = &difference{name: "asked in vain",
		reason: "upstream a parent asks for what its pools' limits will not let them use, " +
			"and keeps it from others; here a need ends at each limit"}
	staticLent = &difference{name: "static lent",
		reason: "upstream a parent lends the static reservation of an idle pool below it, " +
			"where it asks for less itself; here it claims what is to be kept"}
	slackTwice = &difference{name: "slack twice",
		reason: "upstream a slack limit bounds what a pool asks for, but not what those below it get together; " +
			"here it bounds both"}
)

// upstreamDefects lists what the model can be told to do as upstream does.
func upstreamDefects() []*difference {
	return []*difference{grantedTwice, leftOverLost, askedInVain, staticLent, slackTwice}
}

// poolModel computes entitlements in floating point, after section 5 of the reference: the dumb twin of package entitle
// for files, which can also repeat the defects of upstream.
type poolModel struct {
	in    *entitle.Input
	k     terms.Kind
	like  map[*difference]bool
	pools []modelPool
	roots []int
}

// modelPool is one kind of one pool.
type modelPool struct {
	reservation, limit, share, slackLimit float64
	static                                bool
	below                                 []int
	// nonSlack and slack are what the pool asks its parent for, need and idle what it may have of that and what it keeps
	// although nobody asks, total and given the entitlement and the slack.
	nonSlack, slack, need, idle, total, given float64
	// held and asked is slack of overcommitted kinds, usable the slack that fits into the total.
	held, asked, usable float64
}

// newPoolModel makes a model with some of upstream's defects.
func newPoolModel(in *entitle.Input, defects []*difference) *poolModel {
	m := &poolModel{in: in, like: map[*difference]bool{}}
	for _, d := range defects {
		m.like[d] = true
	}
	return m
}

// picture returns the model's entitlements.
func (m *poolModel) picture(numbers map[string]int) entitlementPicture {
	all := make([]entitle.Entitlement, len(m.in.Pools))
	for k := range terms.AmountCount {
		m.k = k
		m.build()
		for _, i := range m.roots {
			m.ask(i)
		}
		m.divide(m.roots, float64(m.in.Capacity[k]))
		slack := float64(terms.Unlimited)
		if k.Overcommitted() {
			slack = float64(m.in.Slack[k])
		}
		m.slacken(m.roots, slack)
		for i, p := range m.pools {
			all[i].Total[k], all[i].NonSlack[k], all[i].Slack[k] = int64(p.total), int64(p.total), int64(p.given)
			if !k.Overcommitted() {
				all[i].NonSlack[k] -= int64(p.given)
			}
		}
	}
	picture := entitlementPicture{map[string]quantities{}, map[string]quantities{}, map[string]quantities{}}
	for name, number := range numbers {
		e := entitle.Entitlement{Total: m.in.Capacity, NonSlack: m.in.Capacity, Slack: m.in.Slack}
		if number >= 0 {
			e = all[number]
		}
		picture.set(name, e)
	}
	return picture
}

func (m *poolModel) build() {
	m.pools, m.roots = make([]modelPool, len(m.in.Pools)), nil
	for i, p := range m.in.Pools {
		q := p.Spec.Quotas[m.k]
		s := &m.pools[i]
		s.reservation, s.limit, s.share, s.static = float64(q.Reservation), float64(q.Limit), float64(q.Share), q.Static
		if !m.k.Overcommitted() {
			s.slackLimit = s.reservation * float64(p.Spec.SlackLimit) / 100
		}
		s.nonSlack = float64(p.Allocated.NonSlack[m.k] + p.Demand.NonSlack[m.k])
		s.slack = float64(p.Allocated.Slack[m.k] + p.Demand.Slack[m.k])
		s.held, s.asked = float64(p.Allocated.Slack[m.k]), float64(p.Demand.Slack[m.k])
		if p.Parent < 0 {
			m.roots = append(m.roots, i)
		} else {
			m.pools[p.Parent].below = append(m.pools[p.Parent].below, i)
		}
	}
}

// ask adds up what a pool asks for.
func (m *poolModel) ask(i int) {
	p := &m.pools[i]
	kept, covered := 0.0, 0.0
	for _, c := range p.below {
		m.ask(c)
		below := &m.pools[c]
		p.nonSlack += below.nonSlack
		p.slack += below.slack
		p.held += below.held
		p.asked += below.asked
		kept += below.idle
		covered += min(below.need, below.reservation)
	}
	slack := min(p.slack, p.slackLimit)
	p.need = min(p.nonSlack+slack, p.limit)
	if !m.like[askedInVain] {
		p.nonSlack = min(p.nonSlack, p.limit)
		p.slack = min(slack, p.limit-p.nonSlack)
	}
	if !m.like[staticLent] {
		p.idle = min(kept, max(p.reservation-covered, 0), p.limit-p.need)
	}
	if p.static {
		p.idle = max(p.idle, p.reservation-p.need)
	}
}

// divide gives an amount to some pools, and what each got to those below it.
func (m *poolModel) divide(pools []int, amount float64) {
	share := func(p *modelPool) float64 { return p.share }
	give := func(p *modelPool, got float64) { p.total += got }
	reserved := func(p *modelPool) float64 { return min(p.need+p.idle, p.reservation) }
	amount = m.full(vessels{pools, func(p *modelPool) float64 { return p.reservation }, reserved, give}, amount)
	amount -= m.pour(vessels{pools, share, func(p *modelPool) float64 { return p.need + p.idle - p.total }, give}, amount)
	if shares := m.sum(pools, share); m.like[leftOverLost] && shares > 0 {
		for _, i := range pools {
			p := &m.pools[i]
			p.total = min(p.limit, p.total+amount*p.share/shares)
		}
		amount = 0
	}
	m.pour(vessels{pools, share, func(p *modelPool) float64 { return p.limit - p.total }, give}, amount)
	for _, i := range pools {
		p := &m.pools[i]
		m.divide(p.below, p.total)
		if p.usable = min(m.sum(p.below, func(c *modelPool) float64 { return c.usable }), p.slackLimit); len(p.below) == 0 ||
			m.like[slackTwice] {
			p.usable = max(min(p.total-p.nonSlack, p.slack, p.slackLimit), 0)
		}
	}
}

// slacken gives slack to some pools, and what each got to those below it.
func (m *poolModel) slacken(pools []int, amount float64) {
	share := func(p *modelPool) float64 { return p.share }
	give := func(p *modelPool, got float64) { p.given += got }
	switch {
	case m.k.Overcommitted():
		amount = m.full(vessels{pools, share, func(p *modelPool) float64 { return p.held }, give}, amount)
		amount -= m.pour(vessels{pools, share, func(p *modelPool) float64 { return p.asked }, give}, amount)
		m.pour(vessels{pools, share, func(p *modelPool) float64 { return float64(terms.Unlimited) }, give}, amount)
	case m.like[slackTwice]:
		for _, i := range pools {
			m.pools[i].given = m.pools[i].usable
		}
	default:
		m.pour(vessels{pools, func(p *modelPool) float64 { return p.slackLimit },
			func(p *modelPool) float64 { return p.usable }, give}, amount)
	}
	for _, i := range pools {
		m.slacken(m.pools[i].below, m.pools[i].given)
	}
}

// vessels are the pools that something is poured into.
type vessels struct {
	pools        []int
	weight, most func(p *modelPool) float64
	give         func(p *modelPool, got float64)
}

func (m *poolModel) sum(pools []int, of func(p *modelPool) float64) float64 {
	sum := 0.0
	for _, i := range pools {
		sum += of(&m.pools[i])
	}
	return sum
}

// full pours, or fills all to the brim where upstream does that although there is too little. It returns what is left.
func (m *poolModel) full(v vessels, amount float64) float64 {
	if !m.like[grantedTwice] {
		return amount - m.pour(v, amount)
	}
	for _, i := range v.pools {
		got := v.most(&m.pools[i])
		v.give(&m.pools[i], got)
		amount -= got
	}
	return max(amount, 0)
}

// pour divides by weight, one full vessel after the other, and returns how much went.
func (m *poolModel) pour(v vessels, amount float64) float64 {
	open := slices.DeleteFunc(slices.Clone(v.pools),
		func(i int) bool { return v.weight(&m.pools[i]) <= 0 || v.most(&m.pools[i]) <= 0 })
	gone := 0.0
	for len(open) > 0 && amount > gone {
		level := (amount - gone) / m.sum(open, v.weight)
		at := slices.IndexFunc(open, func(i int) bool { return v.most(&m.pools[i]) <= level*v.weight(&m.pools[i]) })
		if at < 0 {
			for _, i := range open {
				v.give(&m.pools[i], level*v.weight(&m.pools[i]))
			}
			return amount
		}
		got := v.most(&m.pools[open[at]])
		v.give(&m.pools[open[at]], got)
		gone += got
		open = slices.Delete(open, at, at+1)
	}
	return gone
}
