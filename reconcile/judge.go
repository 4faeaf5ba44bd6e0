package reconcile

import "starling/terms"

// judge decides about the contender that has the seat.
func (d *decider) judge(c *contender, seat Seat) Verdict {
	if seat == CanarySeat {
		d.d.Weight.Canaries++
	}
	v := Verdict{Holder: c.Order}
	switch {
	case d.done(c.Candidate):
		v.Reason = Done
		d.d.Weight.Ignored++
	case d.slot.Closed && c.ended():
		v.Reason = NodeClosed
		d.d.Weight.Ignored++
	case c.class == Migrating:
		d.endQuietly(c.Candidate, Moved, NoClient)
		d.out.Counts.Migrate++
		if v.Action, v.Reason = Place, AfterMove; d.slot.Closed {
			v.Action, v.Reason = Keep, NodeClosed
		}
	default:
		d.keep(c, seat, &v)
	}
	return v
}

// keep decides about an instance that keeps its seat unless it failed or is outdated.
func (d *decider) keep(c *contender, seat Seat, v *Verdict) {
	d.reach(c, v)
	retry, at := d.t.RetryOf(c.Candidate, c.class == Disconnecting)
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
	if retry == Later {
		d.later(at, v)
	}
	if seat == MainSeat && c.Outdated {
		d.d.Weight.Outdated++
		if v.Action, v.ill = Replace, c.Health != Healthy; v.ill {
			d.d.Weight.Ill++
		}
	}
}

// reach finds what is to be said of an instance that went out of reach, is so, or is back. Whatever else it is, it runs
// as asked.
func (d *decider) reach(c *contender, v *Verdict) {
	policy := &d.t.specOf(c.Candidate).Disconnect
	switch {
	case c.class == Disconnecting:
		v.Reason, v.disconnects = WaitsForNode, true
		v.Until = d.t.Now + terms.Time(policy.LostAfterMillis)
	case c.Client == UnknownClient:
		v.Reason = WaitsForNode
		if c.UnknownSince != 0 {
			v.Until = c.expires(policy)
		}
	case c.Final, c.ended() && d.t.specOf(c.Candidate).Reschedule.AttemptsMax == 0:
		v.Reason = NotRetried
	case c.ended():
		v.Reason = OutOfAttempts
	default:
		v.Reason, v.returns = AsAsked, c.back && c.Client == RunningClient
	}
	if v.Until != 0 {
		d.until(v.Until)
	}
}

// again asks for another instance in the place of one that failed or is out of reach. A failed update takes no further
// attempts.
func (d *decider) again(c *contender, v *Verdict) {
	if d.t.failed() && d.t.placedNow(c.Candidate) {
		d.d.Weight.Waiting++
		v.Reason = HeldByFailure
		return
	}
	v.Action, v.Reason = Place, AfterFailure
	if withinReach(c) {
		v.stop = Failed
	}
}

// later lets the seat wait until its holder may be tried again.
func (d *decider) later(at terms.Time, v *Verdict) {
	d.d.Weight.Waiting++
	d.until(at)
	v.Until = at
	if v.Reason == WaitsForNode {
		v.Reason = WaitsForOther
	} else {
		v.Reason = WaitsToRetry
	}
}
