// Package reading tells what the text of a job or an entry, a verdict or a row says by itself.
package reading

import (
	"reflect"
	"slices"
	"strconv"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/retries"
	"starling/command"
	"starling/reconcile"
	"starling/schedule/admission"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// Lasts tells whether a version leaves as it is what cannot change.
func Lasts(old, spec *terms.Job) bool {
	shares := func(spec *terms.Job) [3]bool { return [3]bool{spec.NonPreemptible(), spec.Revocable, spec.Controller} }
	return old.Type == spec.Type && shares(old) == shares(spec) && slices.Equal(old.After, spec.After)
}

// SameProgram tells whether instances of one task are as good as ones of another, if their node does.
func SameProgram(a, b *terms.Task) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := *a, *b
	for _, t := range []*terms.Task{&x, &y} {
		t.MinAvailable, t.MaxRunning, t.MaxRunMillis, t.After, t.OnMembersChange, t.StopDelayMillis = 0, 0, 0, nil, 0, 0
		t.Policies, t.MaxRestarts, t.Percent = nil, 0, 0
		if t.Instances = 0; t.Disconnect.StopAfterMillis == 0 {
			t.StopGraceMillis = 0
		}
		t.Restart, t.Reschedule = terms.Restart{}, terms.Reschedule{}
		t.Constraints, t.PerNodeMax, t.SpreadOver, t.Placement = nil, 0, "", 0
		t.Disconnect = terms.Disconnect{StopAfterMillis: t.Disconnect.StopAfterMillis}
	}
	return reflect.DeepEqual(x, y)
}

// Holds tells whether what fails of a failed update is not tried again: where it took the place of something.
func Holds(u *facts.Update, in rules.Number) bool {
	first := u.From == 0
	return u.State == facts.UpdateFailed && !(first && in >= rules.FirstGoesOn)
}

// Within tells whether an instance of a task needs no more than one of another.
func Within(t, other *terms.Task) bool {
	need, has := t.Amounts(), other.Amounts()
	for k := range need {
		if need[k] > has[k] {
			return false
		}
	}
	return true
}

// Stricter tells whether a task has other rules that its nodes must satisfy, or may have fewer instances on one.
func Stricter(old, now *terms.Task) bool {
	firm := func(t *terms.Task) []constraint.Constraint {
		return slices.DeleteFunc(slices.Clone(t.Constraints), func(c constraint.Constraint) bool { return c.Soft })
	}
	fewer := now.PerNodeMax > 0 && (old.PerNodeMax == 0 || now.PerNodeMax < old.PerNodeMax)
	return fewer || !slices.EqualFunc(firm(old), firm(now), constraint.Same)
}

// AsksExclusive tells whether a constraint asks for a node that is exclusive.
func AsksExclusive(c constraint.Constraint) bool {
	return c.Attribute == "exclusive" || slices.ContainsFunc(append(slices.Clone(c.All), c.Any...), AsksExclusive)
}

// Satisfied tells whether a node that offers this satisfies a constraint on an attribute.
func Satisfied(offer *terms.Offer, c *constraint.Constraint) bool {
	have, exists := "", false
	for _, a := range offer.Attributes {
		if a.Name == c.Attribute {
			have, exists = a.Value, true
		}
	}
	switch c.Operator {
	case constraint.Exists, constraint.NotExists:
		return exists == (c.Operator == constraint.Exists)
	case constraint.Equal, constraint.In:
		return exists && slices.Contains(c.Values, have)
	case constraint.NotEqual, constraint.NotIn:
		return !exists || !slices.Contains(c.Values, have)
	}
	x, bad := strconv.Atoi(have)
	y, _ := strconv.Atoi(c.Values[0])
	return bad == nil && Compared(c.Operator, x, y)
}

// Compared tells whether two numbers compare so.
func Compared(o constraint.Operator, x, y int) bool {
	return map[constraint.Operator]bool{
		constraint.Equal: x == y, constraint.NotEqual: x != y,
		constraint.Less: x < y, constraint.LessOrEqual: x <= y, constraint.Greater: x > y, constraint.GreaterOrEqual: x >= y,
	}[o]
}

// AsksTooMuch tells whether a job has a gang that is too large, or a task asks for more attempts than are remembered.
func AsksTooMuch(l *terms.Limits, spec *terms.Job) bool {
	return spec.GangSize() > uint64(l.Gang) || slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool {
		return t.Reschedule.AttemptsMax > l.Attempts && t.Reschedule.AttemptsMax != terms.RestartsUnlimited
	})
}

// Plain tells whether amounts and the node itself are all that counts for a task: whoever gives way for others makes
// room, but it is not looked for who has a port or a device, and what runs around the task would change.
func Plain(spec *terms.Task) bool {
	social := slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool { return c.Social() })
	return !social && len(spec.Devices)+len(spec.Ports) == 0
}

// HealthyBy returns by when an instance of a version is to be healthy that begins now, 0 if no update waits for that.
func HealthyBy(spec *terms.Job, u *facts.Update, version uint32, now terms.Time) terms.Time {
	if !u.State.Rolls() || version != u.To || spec.Update.HealthyDeadlineMillis == 0 {
		return 0
	}
	return now + terms.Time(spec.Update.HealthyDeadlineMillis)
}

// Gated tells whether a task has a check that keeps its instances from being found.
func Gated(spec *terms.Task) bool {
	return spec != nil && slices.ContainsFunc(spec.Checks, func(c terms.Check) bool {
		return c.OnFailure == terms.UnreadyOnFailure
	})
}

// NotReady has an instance that was ready begin anew, if its node says that it is not and a check counts for that.
func NotReady(spec *terms.Task, row *facts.Slot, by, now terms.Time) bool {
	if !Gated(spec) || row.Health != facts.Ready && row.Health != facts.Healthy {
		return false
	}
	row.Health, row.Since, row.Deadline = facts.Starting, now, by
	return true
}

// Told tells whether others are told of an instance: one with a gate has to run, and to be ready.
func Told(spec *terms.Task, row *facts.Slot) bool {
	ready := row.Phase == facts.Running && (row.Health == facts.Ready || row.Health == facts.Healthy)
	return ready || !Gated(spec)
}

// OwnCode is the exit code of a program that ended by its own doing, 0 of another.
func OwnCode(row *facts.Slot) int32 {
	switch row.Ended {
	case facts.ByItself, facts.BySignal, facts.OutOfMemory, facts.OutOfDisk:
		return row.ExitCode
	}
	return 0
}

// Spent tells whether an instance that has failed so often may not start again on its node, which may lack what it
// needs.
func Spent(spec *terms.Job, rule *terms.Restart, failures uint32, how facts.Ending) bool {
	return how == facts.NotThere && spec.Type != terms.Daemon ||
		rule.AttemptsMax != terms.RestartsUnlimited && failures > rule.AttemptsMax
}

// Away tells whether an offer says that its peer is away at a time, and no later life of its node has written.
func Away(offer *terms.Offer, now terms.Time, lives map[uint32]uint64, life uint32) bool {
	for other := range lives {
		if other > life {
			return false
		}
	}
	return offer != nil && offer.AwayUntil > now
}

// Orphan leaves the joiners that a member takes in without an observer.
func Orphan(attempts map[terms.PeerID]membership.Attempt, observer terms.PeerID) {
	for joiner, a := range attempts {
		if a.Observer == observer {
			a.Phase, a.Observer = membership.Orphaned, ""
			attempts[joiner] = a
		}
	}
}

// Choose returns the first of some peers from a number on that is not away, the one with the number if all are.
func Choose(some []terms.PeerID, number uint64, offer func(terms.PeerID) *terms.Offer) terms.PeerID {
	first := number % uint64(len(some))
	for _, p := range slices.Concat(some[first:], some[:first]) {
		if o := offer(p); o == nil || o.AwayUntil == 0 {
			return p
		}
	}
	return some[first]
}

// TimeAt is the time at an entry, after that of the one before. Under rules.Next it is never the same.
func TimeAt(e *command.Entry, before terms.Time, in rules.Number) terms.Time {
	if in < rules.Next || e.Time > before {
		return max(before, e.Time)
	}
	return before + 1
}

// Crowded is whether a version leaves too little, or nothing, of what the cluster counts for other pools than its own.
type Crowded struct {
	Rules rules.Number
	Spec  *terms.Job
	// Old is how many instances the job has wanted before.
	Old uint64
	// Jobs are those of the pool, JobsLeft those that there may be still, New tells that the job is none of them.
	Jobs, JobsLeft int
	New            bool
}

// Is tells so of how many instances the job and its pool would want, and of how many would be left.
func (c *Crowded) Is(job, pool, left uint64) bool {
	counts := c.Rules >= rules.PoolShares && c.Spec.Type != terms.Daemon
	return c.New && c.JobsLeft <= 0 ||
		counts && (c.New && c.Jobs >= 4*c.JobsLeft || job > c.Old && pool > 4*left)
}

// Now tells whether a request ends what is being stopped, too.
func Now(c command.Command) bool {
	switch c := command.Plain(c).(type) {
	case *command.KillJob:
		return c.Now
	case *command.EndAllocation:
		return c.Now
	}
	return false
}

// Forgotten tells whether what is in a seat is out of reach, and nobody has said for how long it may be.
func Forgotten(row *facts.Slot) bool { return row.Phase == facts.Unknown && row.Deadline == 0 }

// Emptied tells whether a seat is to be empty that is not yet.
func Emptied(v *reconcile.Verdict, row *facts.Slot) bool {
	if v.Reason == reconcile.NodeClosed {
		return row.Phase != facts.Stopped || row.Cause != facts.NoCause
	}
	return v.Action == reconcile.Place && row.Phase != facts.Waiting
}

// Candidate is what the row of a seat says to reconcile; ok is false if it has nothing.
func Candidate(row *facts.Slot) (c reconcile.Candidate, ok bool) {
	c = reconcile.Candidate{Order: row.Order, Version: row.Version, FailedAt: row.Since}
	switch row.Phase {
	case facts.Assigned, facts.BackingOff:
		c.Client = reconcile.PendingClient
	case facts.Running:
		c.Client, c.Started = reconcile.RunningClient, row.Since
	case facts.Stopping:
		c.Client, c.Told = reconcile.RunningClient, true
	case facts.Unknown:
		c.Client, c.Node = reconcile.UnknownClient, reconcile.NodeDisconnected
		c.Unknown, c.UnknownSince, c.Started = true, row.Since, row.Since
	case facts.Rescheduling, facts.Failed:
		c.Client = reconcile.FailedClient
	case facts.Succeeded:
		c.Client = reconcile.CompleteClient
	default:
		return c, false
	}
	return c, true
}

// Again adds the next attempt to those of a slot that waits since some time.
func Again(all retries.Attempts, rule *terms.Reschedule, now, since terms.Time) retries.Attempts {
	next := retries.Attempt{At: now, DelayMillis: reconcile.NextDelay(rule, all.Latest, since)}
	return retries.Attempts{Made: all.Made + 1, Latest: reconcile.Inherit(nil, rule, all.Latest, next)}
}

// Soon is how much before its time a retry is due already.
func Soon(in rules.Number) terms.Time {
	if in < rules.CanaryAttempts {
		return 1000
	}
	return 0
}

// DecisionOf returns what was decided about a slot.
func DecisionOf(result *reconcile.Result, index uint32) (decision reconcile.Decision) {
	for _, d := range result.Decisions {
		if d.Index == index {
			decision = d
		}
	}
	return decision
}

// Updated tells whether an update has brought all to the newest version, which is what begins from then on.
func Updated(u *facts.Update, in rules.Number) bool {
	return u.State == facts.UpdateSucceeded && in >= rules.NewestAfterUpdate
}

// Stays tells whether a canary that failed is tried again in its seat.
func Stays(kind facts.Seat, stop *reconcile.Stopping, in rules.Number) bool {
	return kind == facts.CanarySeat && stop.Reason == reconcile.Failed && in >= rules.CanaryAttempts
}

// Admitted tells whether a pool admits a gang now. If it does not, room is kept for that from then on, as nothing of
// the pool is known to come free.
func Admitted(pool *admission.Admission, g *admission.Gang) bool {
	room := pool.Room(g) > 0
	if !room {
		pool.Await(g, func() []admission.Unit { return nil })
	}
	return room
}
