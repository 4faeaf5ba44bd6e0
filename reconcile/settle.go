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

// prefers tells whether the replacement is kept although the original returned. It is not if it has ended.
func (d *decider) prefers(original, replacement *Candidate) bool {
	return !replacement.ended() && KeepsReplacement(d.t.specOf(original).Disconnect.Keep, original, replacement)
}

// returned returns which of those that were out of reach and are seen again may have the seat back, nil if none may. It
// stops the others.
func (d *decider) returned(list []contender) *contender {
	var kept *contender
	for next := eldestReturned(list); next != nil; next = eldestReturned(list) {
		next.class, next.back = Untouched, true
		switch c := next.Candidate; {
		case c.Client == FailedClient:
			d.stop(c, FailedAway, FailedClient)
		case c.Migrate || d.t.older(c):
			d.stop(c, ReturnedOutdated, NoClient)
		case kept != nil && !d.prefers(kept.Candidate, c):
			d.stop(c, OriginalKept, NoClient)
		default:
			if kept != nil {
				d.stop(kept.Candidate, OtherKept, NoClient)
			}
			kept = next
		}
	}
	return kept
}

// eldestReturned returns the oldest contender that returned and was not looked at yet.
func eldestReturned(list []contender) *contender {
	for i := range list {
		if c := &list[i]; c.class == Reconnecting {
			return c
		}
	}
	return nil
}

// best returns which of the contenders that did not return should have the seat, and dismisses the others.
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
	case c.Client == UnknownClient:
		d.d.Weight.Ignored++
		d.until(c.expires(&d.t.specOf(c.Candidate).Disconnect))
	case c.ended():
		d.d.Weight.Ignored++
	default:
		d.stop(c.Candidate, Duplicate, NoClient)
	}
}

// compare tells which should rather have the seat: above 0 if a, below 0 if b. In order: work that is done, what is
// within reach, what runs, the newest, the youngest.
func (d *decider) compare(a, b *contender) int {
	return cmp.Or(
		compareBool(d.done(a.Candidate), d.done(b.Candidate)),
		compareBool(withinReach(a), withinReach(b)),
		compareBool(!a.ended(), !b.ended()),
		cmp.Compare(a.Version, b.Version),
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

// withinReach tells whether a candidate's node is heard of, as far as that matters.
func withinReach(c *contender) bool { return c.class != Disconnecting && c.Client != UnknownClient }

// done tells whether the candidate is batch work that has succeeded, which nothing follows.
func (d *decider) done(c *Candidate) bool { return d.t.Batch && !c.Told && c.Client == CompleteClient }
