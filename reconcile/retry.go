package reconcile

import "starling/cluster"

// soonMillis is how much before its time a retry is due already, so that it costs no follow-up of its own.
const soonMillis = 1000

// Retry tells when a candidate is to be placed again.
type Retry uint8

// The values of Retry.
const (
	Never Retry = iota
	Later
	Now
)

// Next returns when what ended at the given time may be placed again after the given attempts, and whether it may at
// all.
func (p *RetryPolicy) Next(attempts []Attempt, ended cluster.Time) (cluster.Time, bool) {
	delay := p.NextDelay(attempts, ended)
	at := ended + cluster.Time(delay)
	switch {
	case p.Unlimited:
		return at, true
	case p.Attempts == 0:
		return at, false
	case len(attempts) == 0:
		return at, true
	}
	return at, p.made(attempts, ended) < p.Attempts && delay < p.Interval
}

// made counts the attempts within the interval before the given time.
func (p *RetryPolicy) made(attempts []Attempt, ended cluster.Time) uint32 {
	n := uint32(0)
	for i := range attempts {
		if ended-attempts[i].At < cluster.Time(p.Interval) {
			n++
		}
	}
	return n
}

// NextDelay returns the delay that the next attempt has after the given ones. A series that reached the longest delay
// begins anew once an instance has lived for longer than that.
func (p *RetryPolicy) NextDelay(attempts []Attempt, ended cluster.Time) Millis {
	n := len(attempts)
	if n == 0 || p.Growth == Constant {
		return p.Delay
	}
	delay := p.Delay
	switch last := attempts[n-1]; {
	case p.Growth == Exponential:
		delay = 2 * last.Delay
	case n < 2:
	case attempts[n-2].Delay == p.DelayMax && last.Delay == p.Delay:
		delay = last.Delay
	default:
		delay = last.Delay + attempts[n-2].Delay
	}
	if p.DelayMax <= 0 || delay <= p.DelayMax {
		return delay
	}
	if ended-attempts[n-1].At > cluster.Time(p.DelayMax) {
		return p.Delay
	}
	return p.DelayMax
}

// Inherit appends to dst the attempts that a replacement made at the given time takes over, itself included: those
// within the interval, or the last of an unlimited policy.
func (p *RetryPolicy) Inherit(dst, attempts []Attempt, next Attempt) []Attempt {
	const unlimitedKept = 5
	if p.Unlimited {
		attempts = attempts[max(0, len(attempts)-unlimitedKept):]
	}
	for _, a := range attempts {
		if p.Unlimited || next.At-a.At < cluster.Time(p.Interval) {
			dst = append(dst, a)
		}
	}
	return append(dst, next)
}

// RetryOf returns whether the candidate is placed again, and if later, when. A disconnecting candidate is judged as if
// it ended now.
func (t *Task) RetryOf(c *Candidate, disconnecting bool) (Retry, cluster.Time) {
	rules := t.rules(c)
	if t.governs(c) && !c.Reschedule {
		return Never, 0
	}
	if c.Force && c.ended() {
		return Now, t.Now
	}
	if (disconnecting || c.Client == UnknownClient) && rules.Disconnect.KeepOnly {
		return Never, 0
	}
	ended, may := t.endOf(c, disconnecting)
	if !may {
		return Never, 0
	}
	at, may := rules.Retry.Next(c.Attempts, ended)
	switch {
	case !may:
		return Never, 0
	case c.FollowUp == FollowUpDue, at-t.Now <= soonMillis:
		return Now, at
	}
	return Later, at
}

// endOf returns from when on the delay of a retry counts, and whether what happened asks for a retry.
func (t *Task) endOf(c *Candidate, disconnecting bool) (cluster.Time, bool) {
	switch {
	case disconnecting:
		return t.Now, true
	case c.Client == UnknownClient:
		return c.UnknownSince, c.FollowUp != NoFollowUp
	case c.Desired == Stop && !c.Unplaced && !c.Parked:
		return 0, false
	}
	failed := c.Client == FailedClient || c.Client == LostClient
	return c.FailedAt, failed || t.Batch && c.Reschedule
}
