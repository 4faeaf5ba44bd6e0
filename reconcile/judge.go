package reconcile

import "starling/terms"

// judge decides about the contender that has the seat.
func (d *decider) judge(c *contender, seat Seat) Verdict {
	if seat == CanarySeat {
		d.d.Weight.Canaries++
	}
	v := Verdict{Holder: c.Order, Version: c.Version}
	switch {
	case d.done(c.Candidate):
		v.Reason = Done
		if c.Closed {
			v.Reason = ClosedByDrain
		}
		d.d.Weight.Ignored++
	case c.class == Migrating:
		d.move(c.Candidate, &v)
	default:
		d.keep(c, seat, &v)
	}
	return v
}

// move decides about an instance that must leave its node.
func (d *decider) move(c *Candidate, v *Verdict) {
	d.endQuietly(c, Moved, NoClient)
	d.out.Counts.Migrate++
	stopped := &d.out.Stops[len(d.out.Stops)-1]
	if !d.t.Batch || d.t.older(c) || !c.Closed && !c.Reschedule {
		v.Action, v.Reason = Place, AfterMove
		return
	}
	retry, at := Never, terms.Time(0)
	if v.Reason = ClosedByDrain; !c.Closed {
		retry, at = d.t.RetryOf(c, false)
		v.Reason = d.givenUp(c)
	}
	switch retry {
	case Never:
		stopped.Closes = true
	case Later:
		stopped.Parks = true
		d.later(c, at, v)
	case Now:
		v.Action, v.Reason = Place, AfterFailure
	}
}

// keep decides about an instance that keeps its seat unless it failed or is outdated.
func (d *decider) keep(c *contender, seat Seat, v *Verdict) {
	d.reach(c, v)
	retry, at := Never, terms.Time(0)
	if disconnecting := c.class == Disconnecting; disconnecting || c.Client == UnknownClient || Occupation(c.Candidate, d.t.Batch) == Retries {
		retry, at = d.t.RetryOf(c.Candidate, disconnecting)
	}
	if retry == Now {
		d.again(c, v)
		return
	}
	d.d.Weight.Ignored++
	if d.t.placedNow(c.Candidate) {
		d.d.Weight.judge(c.Health)
	}
	if seat == CanarySeat && c.Health == Healthy && !c.ended() {
		d.d.Weight.CanariesHealthy++
	}
	switch {
	case retry == Later:
		d.later(c.Candidate, at, v)
	case d.t.governs(c.Candidate) && v.Reason != AsAsked:
		d.d.Weight.Waiting++ // until its update has decided
	}
	if seat == MainSeat && !c.toldToEnd() {
		d.change(c.Candidate, v)
	}
}

// reach finds what is to be said of an instance that went out of reach, is so, or is back. Whatever else it is, it runs
// as asked.
func (d *decider) reach(c *contender, v *Verdict) {
	switch {
	case c.class == Disconnecting:
		v.Reason, v.disconnects = WaitsForNode, true
		v.lostAt = d.t.Now + terms.Time(d.t.specOf(c.Candidate).Disconnect.LostAfterMillis)
		v.Until = v.lostAt
	case c.Client == UnknownClient:
		v.Reason = WaitsForNode
		if policy := &d.t.specOf(c.Candidate).Disconnect; c.UnknownSince != 0 {
			v.Until = c.expires(policy)
		}
	case c.Client == FailedClient && d.t.governs(c.Candidate):
		v.Reason = LeftToUpdate
	case c.terminal():
		v.Reason = d.givenUp(c.Candidate)
	default:
		v.Reason, v.returns = AsAsked, c.back && c.Client == RunningClient
	}
	if v.Until != 0 {
		d.until(v.Until)
	}
}

// givenUp says why a candidate that failed is not tried again.
func (d *decider) givenUp(c *Candidate) Reason {
	if d.t.specOf(c).Reschedule.AttemptsMax == 0 {
		return NotRetried
	}
	return OutOfAttempts
}

// again asks for another instance in the place of one that failed or is out of reach. A failed update takes no further
// attempts.
func (d *decider) again(c *contender, v *Verdict) {
	if d.t.failed() && d.t.placedNow(c.Candidate) {
		d.d.Weight.Frozen++
		v.Reason = HeldByFailure
		return
	}
	v.Action, v.Reason = Place, AfterFailure
	if !c.toldToEnd() && withinReach(c) {
		v.stop = Failed
	}
}

// later lets the seat wait until its holder may be tried again.
func (d *decider) later(c *Candidate, at terms.Time, v *Verdict) {
	d.d.Weight.Waiting++
	d.until(at)
	v.Until, v.records = at, c.FollowUp == NoFollowUp
	if v.Reason == WaitsForNode {
		v.Reason = WaitsForOther
	} else {
		v.Reason = WaitsToRetry
	}
}

// change asks for what the present version means for the holder.
func (d *decider) change(c *Candidate, v *Verdict) {
	switch {
	case c.Change == Destructive:
		d.d.Weight.Outdated++
		if v.Action, v.ill = Replace, c.Health != Healthy; v.ill {
			d.d.Weight.Ill++
		}
	case c.Change == InPlace && !c.ended():
		v.Action = Alter
	}
}

// disconnect writes down that an instance is out of reach, and when it counts as lost.
func (d *decider) disconnect(c *Candidate) {
	at := d.t.Now + terms.Time(d.t.specOf(c).Disconnect.LostAfterMillis)
	d.out.Disconnects = append(d.out.Disconnects, d.reference(c))
	d.wait(c, at, UntilLost)
	d.until(at)
}
