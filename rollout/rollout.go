package rollout

import (
	"fmt"
	"math"

	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// Work is a number of instances to add, to move to the new version and to remove.
type Work struct{ Add, Move, Remove uint32 }

// Wave returns how much of the work may begin while some of it is under way: together at most a batch (0 is all), what is
// added first, then what is moved, then what is removed.
func Wave(batch, underWay uint32, left Work) Work {
	room := Room(batch, underWay)
	now := Work{Add: min(left.Add, room)}
	now.Move = min(left.Move, room-now.Add)
	now.Remove = min(left.Remove, room-now.Add-now.Move)
	return now
}

// Room returns how much may begin while so much is under way.
func Room(batch, underWay uint32) uint32 {
	if batch == 0 {
		return math.MaxUint32
	}
	return batch - min(underWay, batch)
}

// Progress is how far a task is with an update, counted from its slots.
type Progress struct {
	// Left is what has not begun, UnderWay what has begun and is not healthy; Canaries have not taken their places.
	Left               Work
	UnderWay, Canaries uint32
}

// ProgressOf counts how far a task is.
func ProgressOf(t *cluster.Task, wanted uint32) Progress {
	leaving := uint32(t.Slots.Len()) - t.Desired
	p := Progress{UnderWay: t.New[cluster.Untried] + t.New[cluster.Ready] + leaving}
	for _, n := range t.Canaries {
		p.Canaries += n
	}
	for _, n := range t.Old {
		p.Left.Move += n
	}
	p.Left.Add, p.Left.Remove = wanted-min(t.Desired, wanted), t.Desired-min(t.Desired, wanted)
	return p
}

// Done tells whether nothing is left and nothing is under way.
func (p *Progress) Done() bool { return p.Left == Work{} && p.UnderWay == 0 && p.Canaries == 0 }

// Spare returns how many well instances of a task may be taken away at this moment for a batch of that size (0 is all).
// Instances that an update allows to fail do not use up its batch.
func Spare(t *cluster.Task, batch, failuresMax uint32) uint32 {
	well := t.New[cluster.Healthy] + t.Old[cluster.Healthy]
	if batch == 0 {
		return well
	}
	ill := t.Desired - min(well, t.Desired)
	ill -= min(ill, t.New[cluster.Unhealthy], failuresMax)
	return batch - min(batch, ill)
}

// InstanceFailed tells whether an instance that failed so often in a row counts as failed; 0 attempts are without end.
func InstanceFailed(failures, attemptsMax uint32) bool {
	return attemptsMax > 0 && failures >= attemptsMax
}

// Failed tells whether so many failed instances fail an update.
func Failed(failed, failuresMax uint32) bool {
	return failuresMax != terms.RestartsUnlimited && failed > failuresMax
}

// Begin returns the record of an update that begins now.
func Begin(u cluster.Update, policy *terms.UpdatePolicy, now terms.Time) cluster.Update {
	u.State, u.BeganAt, u.ProgressAt = cluster.RollingForward, now, now
	if policy.StartPaused {
		u.State, u.Before, u.Reason = cluster.Paused, cluster.RollingForward, "it was to start paused"
	}
	return u
}

// End returns the record of an update that ends now.
func End(u cluster.Update, state cluster.UpdateState, reason string, now terms.Time) cluster.Update {
	u.State, u.Before, u.Reason, u.EndedAt, u.LookedAt = state, cluster.NoUpdate, reason, now, 0
	return u
}

// Succeed returns the record of an update that has reached all instances now.
func Succeed(u cluster.Update, now terms.Time) cluster.Update {
	if u.State == cluster.RollingBackward {
		return End(u, cluster.RolledBack, u.Reason, now)
	}
	return End(u, cluster.UpdateSucceeded, "", now)
}

// Deadline returns by when an update must get on, 0 if it need not: it is paused, has ended, or waits for its promotion or
// for room.
func Deadline(u *cluster.Update, policy *terms.UpdatePolicy, waitsForUser bool) terms.Time {
	if !u.State.Rolls() || policy.ProgressDeadlineMillis == 0 || waitsForUser || u.ProgressAt == 0 {
		return 0
	}
	return u.ProgressAt + terms.Time(policy.ProgressDeadlineMillis)
}

// Steer returns the record after a user paused or resumed it, or why that cannot be.
func Steer(u cluster.Update, how command.Steering, now terms.Time) (cluster.Update, string) {
	switch {
	case u.State == cluster.NoUpdate:
		return u, "there is no update"
	case u.State.Final():
		return u, fmt.Sprintf("the update has ended: %s", u.State)
	case how == command.Pause && u.State == cluster.Paused:
		return u, "the update is paused already"
	case how == command.Pause:
		u.State, u.Before, u.Reason, u.LookedAt = cluster.Paused, u.State, "a user paused it", 0
	case how == command.Resume && u.State != cluster.Paused:
		return u, "the update is not paused"
	case how == command.Resume:
		u.State, u.Before, u.Reason, u.ProgressAt = u.Before, cluster.NoUpdate, "", now
	case how == command.Abort:
		return End(u, cluster.UpdateAborted, "a user aborted it", now), ""
	case how == command.Promote && u.Promoted:
		return u, "the update has no canaries that wait"
	}
	return u, ""
}
