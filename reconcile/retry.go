package reconcile

import (
	"starling/cluster/retries"
	"starling/terms"
)

// SoonMillis is how much before its time a retry is due already where that saves a look of its own.
const SoonMillis = 1000

// unlimitedKept is how many attempts a slot remembers that has no limit, for the sake of growing delays.
const unlimitedKept = 5

// Attempt is one reschedule.
type Attempt = retries.Attempt

// Retry tells when a candidate is to be placed again.
type Retry uint8

// The values of Retry.
const (
	Never Retry = iota
	Later
	Now
)

// NextAttempt returns when what ended at the given time may be placed again after the given attempts, oldest first, and
// whether it may at all.
func NextAttempt(policy *terms.Reschedule, attempts []Attempt, ended terms.Time) (terms.Time, bool) {
	delay := NextDelay(policy, attempts, ended)
	at := ended + terms.Time(delay)
	switch {
	case policy.AttemptsMax == terms.RestartsUnlimited:
		return at, true
	case policy.AttemptsMax == 0:
		return at, false
	case len(attempts) == 0:
		return at, true
	}
	return at, retries.Within(attempts, policy.IntervalMillis, ended) < policy.AttemptsMax && delay < policy.IntervalMillis
}

// NextDelay returns the milliseconds before the next attempt after the given ones. A series that reached the longest
// delay begins anew once an instance has lived for longer than that.
func NextDelay(policy *terms.Reschedule, attempts []Attempt, ended terms.Time) uint32 {
	n := len(attempts)
	if n == 0 || policy.Growth == terms.Constant {
		return policy.DelayMillis
	}
	last := attempts[n-1]
	delay := uint64(policy.DelayMillis)
	switch {
	case policy.Growth == terms.Exponential:
		delay = 2 * uint64(last.DelayMillis)
	case n < 2:
	case attempts[n-2].DelayMillis == policy.DelayMaxMillis && last.DelayMillis == policy.DelayMillis:
		delay = uint64(last.DelayMillis)
	default:
		delay = uint64(last.DelayMillis) + uint64(attempts[n-2].DelayMillis)
	}
	switch {
	case delay <= uint64(policy.DelayMaxMillis):
		return uint32(delay)
	case ended-last.At > terms.Time(policy.DelayMaxMillis):
		return policy.DelayMillis
	}
	return policy.DelayMaxMillis
}

// Inherit appends to dst the attempts that a replacement takes over, the next included: those within the interval, or
// the last of an unlimited policy.
func Inherit(dst []Attempt, policy *terms.Reschedule, attempts []Attempt, next Attempt) []Attempt {
	unlimited := policy.AttemptsMax == terms.RestartsUnlimited
	if unlimited {
		attempts = attempts[max(0, len(attempts)-unlimitedKept):]
	}
	for _, a := range attempts {
		if unlimited || next.At-a.At < terms.Time(policy.IntervalMillis) {
			dst = append(dst, a)
		}
	}
	return append(dst, next)
}

// RetryOf returns whether the candidate is placed again, and if later, when. A disconnecting candidate is judged as if
// it ended now.
func (t *Task) RetryOf(c *Candidate, disconnecting bool) (Retry, terms.Time) {
	spec, ended := t.specOf(c), c.FailedAt
	switch {
	case c.Final:
		return Never, 0
	case disconnecting:
		ended = t.Now
	case c.Client == UnknownClient:
		ended = c.UnknownSince
	case c.Client != FailedClient:
		return Never, 0
	}
	if spec.Disconnect.Wait && c.Client != FailedClient {
		return Never, 0
	}
	at, may := NextAttempt(&spec.Reschedule, c.Attempts, ended)
	switch {
	case !may:
		return Never, 0
	case c.Due, at-t.Now <= t.Soon:
		return Now, at
	}
	return Later, at
}

// KeepsReplacement tells which of two instances of one seat is kept when the original returns. What runs a newer
// version wins; then the rule decides.
func KeepsReplacement(rule terms.Survivor, original, replacement *Candidate) bool {
	switch {
	case replacement.Version > original.Version || rule == terms.KeepReplacement:
		return true
	case rule == terms.KeepOriginal || replacement.Started == 0:
		return false
	}
	return original.Started == 0 || replacement.Started <= original.Started
}
