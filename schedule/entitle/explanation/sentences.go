package explanation

import (
	"fmt"
	"strings"

	"starling/schedule/entitle"
	"starling/terms"
)

// teller tells of one pool and kind.
type teller struct {
	*Pools
	number   int
	kind     terms.Kind
	use      Use
	trace    *entitle.Trace
	quota    *terms.Quota
	siblings []int
	lines    []string
}

// Sentences tells how a pool's entitlement of one kind came about, what keeps it from more, and what would help.
func (b *Pools) Sentences(number int, k terms.Kind) []string {
	t := &teller{
		Pools: b, number: number, kind: k, use: b.Use(number, k), trace: &b.traces[number],
		quota:    &b.in.Pools[number].Spec.Quotas[k],
		siblings: b.Siblings(number),
	}
	t.demand()
	t.source()
	t.reserved()
	t.shared()
	t.slack()
	t.cut()
	t.surplus()
	return t.lines
}

func (t *teller) say(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *teller) text(amount int64) string { return t.kind.Round(amount) }

func (t *teller) path(number int) string {
	if number < 0 {
		return "the cluster"
	}
	return string(t.in.Pools[number].Spec.Path)
}

func (t *teller) parent() int { return t.in.Pools[t.number].Parent }

// demand says what is asked for, and what of it does not count.
func (t *teller) demand() {
	asked, wanted := t.trace.Asked[t.kind], t.use.Held+t.use.Asked
	whose := "its jobs hold"
	if t.kind.Overcommitted() && t.use.SlackHeld+t.use.SlackAsked > 0 {
		whose = "its jobs that are not revocable hold"
	}
	if wanted == 0 {
		t.say("%s nothing and ask for nothing", whose)
		return
	}
	t.say("%s %s and wait for %s: that asks for %s", whose, t.text(t.use.Held), t.text(t.use.Asked), t.text(asked))
	if asked >= wanted {
		return
	}
	spec, work, missing := t.in.Pools[t.number].Spec, &t.asked[t.number], t.text(wanted-asked)
	switch k := t.kind; {
	case t.Leaf(t.number) && work.NonPreemptible[k] > 0:
		within := "the reservation of its pool, " + t.text(t.quota.Reservation)
		if t.quota.Reservation == 0 {
			within = "what no pool reserves"
		}
		t.say("%s of what waits does not count: work that is not preemptible has room only in %s", missing, within)
	case t.Leaf(t.number):
		t.say("%s of what waits does not count: controllers have room only in %d %% of the reservation, %s", missing,
			spec.ControllerLimit, t.text(spec.ControllerMost(k)))
	default:
		t.say("%s of what waits does not count: bounds of the pools below keep it", missing)
	}
}

// source says what is divided, and what all ask for.
func (t *teller) source() {
	sum, pools := int64(0), len(t.siblings)
	for _, i := range t.siblings {
		sum += t.traces[i].Claim[t.kind]
	}
	verb := "is entitled to"
	if t.parent() < 0 {
		verb = "has"
	}
	if pools == 1 {
		t.say("%s %s %s, all for this pool", t.path(t.parent()), verb, t.text(t.Divided(t.number, t.kind)))
		return
	}
	t.say("%s %s %s, divided among %d pools, which claim %s together", t.path(t.parent()), verb,
		t.text(t.Divided(t.number, t.kind)),
		pools, t.text(sum))
}

// reserved says what the reservation gave.
func (t *teller) reserved() {
	k, r := t.kind, t.quota.Reservation
	switch got := t.trace.Reserved[k]; {
	case r == 0:
		t.say("it has no reservation")
	case t.trace.Short[k] > 0:
		t.say("its reservation of %s gives %s: %s has less than was reserved, and each pool gets its part",
			t.text(r), t.text(got), t.path(t.parent()))
	case got == 0:
		t.say("its reservation of %s is not needed now", t.text(r))
	case got < r:
		t.say("its reservation of %s gives the %s that it needs", t.text(r), t.text(got))
	case t.quota.Static && t.trace.Asked[k] < r:
		t.say("its reservation gives %s, needed or not, since it is static", t.text(got))
	default:
		t.say("its reservation gives %s", t.text(got))
	}
}

// shared says what the share gave.
func (t *teller) shared() {
	k := t.kind
	if t.quota.Share == 0 {
		t.say("its share is 0: it gets nothing beyond the reservation")
		return
	}
	if got := t.trace.Shared[k]; got > 0 || t.trace.Cut[k] == entitle.ByParent && t.trace.Short[k] == 0 {
		t.say("its share, %d of %d among those that ask for more, gives %s", t.quota.Share, t.shares(), t.text(got))
	}
	if got := t.trace.Left[k]; got > 0 {
		t.say("%s more is left over by all and divided by share, as room for what comes next", t.text(got))
	}
}

// shares sums up the shares of those that ask for more than their reservations gave.
func (t *teller) shares() (sum int64) {
	for _, i := range t.siblings {
		if t.traces[i].Claim[t.kind] > t.traces[i].Reserved[t.kind] {
			sum += t.in.Pools[i].Spec.Quotas[t.kind].Share
		}
	}
	return sum
}

// slack says what is for revocable work.
func (t *teller) slack() {
	u := &t.use
	switch {
	case u.SlackHeld+u.SlackAsked == 0:
	case t.kind.Overcommitted():
		t.say("beside that revocable work may use %s that nothing holds now: it holds %s and waits for %s",
			t.text(u.SlackEntitled), t.text(u.SlackHeld), t.text(u.SlackAsked))
	default:
		t.say("%s of it is for revocable work, which holds %s and waits for %s", t.text(u.SlackEntitled),
			t.text(u.SlackHeld), t.text(u.SlackAsked))
	}
}

// cut says what keeps the pool, or one above it, from more, and what would help.
func (t *teller) cut() {
	k := t.kind
	var help []string
	for at := t.number; ; {
		spec, trace := t.in.Pools[at].Spec, &t.traces[at]
		missing := t.text(trace.Asked[k] - trace.Total[k])
		name := "it"
		if at != t.number {
			name = t.path(at)
		}
		switch parent := t.in.Pools[at].Parent; trace.Cut[k] {
		case entitle.NotCut:
			if at == t.number && t.use.Asked > 0 && t.use.Held+t.use.Asked <= trace.Total[k] {
				t.say("that covers all that it asks for")
			}
		case entitle.ByLimit:
			t.say("%s gets %s less than is asked for: its limit is %s", name, missing, t.text(spec.Quotas[k].Limit))
			help = append(help, fmt.Sprintf("a higher %s.%s.limit", spec.Path, k))
		case entitle.BySlackLimit:
			missing := t.held[at].Slack[k] + t.asked[at].Slack[k] - trace.Slack[k]
			t.say("revocable work in %s gets %s less than it asks for: it may have %d %% of the reservation, %s",
				t.path(at), t.text(missing), spec.SlackLimit, t.text(spec.SlackMost(k)))
			help = append(help, fmt.Sprintf("a higher %s.slack_limit or %s.%s.reservation", spec.Path, spec.Path, k))
		case entitle.ByShare:
			t.say("%s gets %s less than is asked for: there would be more, but its share is 0", name, missing)
			help = append(help, fmt.Sprintf("a %s.%s.share above 0, or a higher reservation", spec.Path, k))
		case entitle.ByParent:
			t.say("%s gets %s less than is asked for: %s has no more", name, missing, t.path(parent))
			help = append(help, t.morePart(at)...)
			if at = parent; at >= 0 {
				continue
			}
			help = append(help, "more machines")
		}
		break
	}
	for _, one := range help {
		t.say("would help: %s", one)
	}
}

// morePart says how a pool would get a larger part of what its parent has.
func (t *teller) morePart(at int) []string {
	k, parent := t.kind, t.in.Pools[at].Parent
	free := t.in.Capacity[k]
	if parent >= 0 {
		free = t.in.Pools[parent].Spec.Quotas[k].Reservation
	}
	var others []string
	unseen := int64(0)
	for _, i := range t.Siblings(at) {
		free -= t.in.Pools[i].Spec.Quotas[k].Reservation
		if more := t.traces[i].Shared[k]; i != at && more > 0 {
			if t.names != nil && !t.names(t.in.Pools[i].Spec.Path) {
				unseen += more
				continue
			}
			others = append(others, fmt.Sprintf("%s (%s)", t.path(i), t.text(more)))
		}
	}
	if unseen > 0 {
		others = append(others, fmt.Sprintf("pools of others (%s)", t.text(unseen)))
	}
	help := []string{fmt.Sprintf("a higher %s.%s.reservation: %s has %s that no pool reserves", t.path(at), k,
		t.path(parent), t.text(free))}
	if free <= 0 {
		help[0] = fmt.Sprintf("a higher %s.%s.reservation, with lower ones elsewhere: all that %s has is reserved",
			t.path(at), k, t.path(parent))
	}
	const most = 3
	if len(others) == 0 {
		return help
	}
	if len(others) > most {
		others = append(others[:most], fmt.Sprintf("%d more", len(others)-most))
	}
	return append(help, fmt.Sprintf("a higher %s.%s.share, or less demand where others get more than their reservations: %s",
		t.path(at), k, strings.Join(others, ", ")))
}

// surplus says what the pool holds beyond its entitlement, and what it lends.
func (t *teller) surplus() {
	u := &t.use
	if over := u.Held - u.Entitled; over > 0 {
		t.say("it holds %s more than it is entitled to: pools that are entitled to that may take it back from preemptible work", t.text(over))
	}
	if u.Lent > 0 {
		t.say("%s of its reservation is lent to others, which give it back when it is needed", t.text(u.Lent))
	}
}
