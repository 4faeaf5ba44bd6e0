package reconcile

import "cmp"

// settle returns which of the contenders keeps the seat, nil if none does, and dismisses the others.
func (d *decider) settle(list []contender) *contender {
	original, other := d.returned(list), d.best(list)
	switch {
	case original == nil:
		return other
	case other == nil:
		return original
	case d.done(other.Candidate), d.prefers(original.Candidate, other.Candidate):
		d.stop(original.Candidate, OtherKept, NoClient)
		return other
	}
	d.stop(other.Candidate, OriginalKept, NoClient)
	return original
}

// prefers tells whether the replacement is kept although the original returned. What has ended is kept for its version
// only.
func (d *decider) prefers(original, replacement *Candidate) bool {
	if replacement.ended() && !d.t.older(original) {
		return false
	}
	return KeepsReplacement(d.t.rules(original).Disconnect.Survivor, original, replacement)
}

// returned returns which of those that were out of reach and are seen again may have the seat back, nil if none may. It
// stops the others.
func (d *decider) returned(list []contender) *contender {
	var kept *contender
	for {
		next := youngerReturned(list, kept)
		if next == nil {
			return kept
		}
		c := next.Candidate
		next.class, next.back = Untouched, true
		switch {
		case c.Client == FailedClient:
			d.stop(c, FailedAway, FailedClient)
			next.Candidate = nil
		case c.Migrate || c.Reschedule || c.Force || d.t.older(c):
			d.stop(c, ReturnedOutdated, NoClient)
			next.Candidate = nil
		case kept == nil:
			kept = next
		case d.prefers(kept.Candidate, c):
			d.stop(kept.Candidate, OtherKept, NoClient)
			kept.Candidate = nil
			kept = next
		default:
			d.stop(c, OriginalKept, NoClient)
			next.Candidate = nil
		}
	}
}

// youngerReturned returns the oldest contender that returned and was not looked at yet.
func youngerReturned(list []contender, kept *contender) *contender {
	var next *contender
	for i := range list {
		if c := &list[i]; c.class == Reconnecting && c != kept && (next == nil || c.Order < next.Order) {
			next = c
		}
	}
	return next
}

// best returns who of the contenders that did not return should have the seat, and dismisses the others.
func (d *decider) best(list []contender) *contender {
	var best *contender
	for i := range list {
		c := &list[i]
		if c.back {
			continue
		}
		switch {
		case best == nil:
			best = c
		case d.compare(c, best) > 0:
			d.dismiss(best)
			best = c
		default:
			d.dismiss(c)
		}
	}
	return best
}

// dismiss lets a contender go that has no claim to the seat. One that is out of reach is a guest: it is not stopped,
// since it may be the one that is left.
func (d *decider) dismiss(c *contender) {
	switch {
	case c.Client == UnknownClient && !c.toldToEnd():
		d.d.Weight.Ignored++
		d.until(c.expires(&d.t.rules(c.Candidate).Disconnect))
	case c.class == Disconnecting:
		d.d.Weight.Ignored++
		d.disconnect(c.Candidate)
	case c.terminal():
		d.d.Weight.Ignored++
	default:
		d.stop(c.Candidate, Duplicate, NoClient)
	}
}

// compare tells who should rather have the seat: above 0 if a, below 0 if b. In order: work that is done, what is within
// reach, a promoted canary, the present version, the newest, what stays where it is, the best state, the next to be tried again, the
// youngest.
func (d *decider) compare(a, b *contender) int {
	return cmp.Or(
		compareBool(d.done(a.Candidate), d.done(b.Candidate)),
		compareBool(withinReach(a), withinReach(b)),
		compareBool(a.Canary, b.Canary),
		compareBool(!d.t.older(a.Candidate), !d.t.older(b.Candidate)),
		cmp.Compare(a.Instance, b.Instance),
		cmp.Compare(a.Version, b.Version),
		cmp.Compare(b.Change, a.Change),
		compareBool(a.class != Migrating, b.class != Migrating),
		cmp.Compare(condition(a.Candidate), condition(b.Candidate)),
		d.compareRetry(a.Candidate, b.Candidate),
		cmp.Compare(a.Order, b.Order),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func withinReach(c *contender) bool { return c.class != Disconnecting && c.Client != UnknownClient }

// condition ranks how well a candidate is.
func condition(c *Candidate) int {
	switch {
	case c.terminal():
		return 0
	case c.Health == Healthy:
		return 3
	case c.Client == RunningClient:
		return 2
	}
	return 1
}

// compareRetry prefers whom the retry policy lets be tried again sooner.
func (d *decider) compareRetry(a, b *Candidate) int {
	if !a.ended() || !b.ended() {
		return 0
	}
	first, _ := d.t.RetryOf(a, false)
	second, _ := d.t.RetryOf(b, false)
	return cmp.Compare(first, second)
}

// done tells whether the candidate is batch work that is not run again.
func (d *decider) done(c *Candidate) bool {
	return d.t.Batch && (c.Client == CompleteClient && !c.Reschedule || c.toldToEnd() && Occupation(c, true) == Occupies)
}
