package rollout

import (
	"fmt"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// InstanceFailed tells whether an instance that failed so often in a row counts as failed; 0 attempts are without end.
func InstanceFailed(failures, attemptsMax uint32) bool {
	return attemptsMax > 0 && failures >= attemptsMax
}

// Failed tells whether so many failed instances fail an update.
func Failed(failed, failuresMax uint32) bool {
	return failuresMax != terms.RestartsUnlimited && failed > failuresMax
}

// Begin returns the record of an update that begins now.
func Begin(u facts.Update, policy *terms.UpdatePolicy, now terms.Time) facts.Update {
	u.State, u.BeganAt, u.ProgressAt = facts.RollingForward, now, now
	if policy.StartPaused {
		u.State, u.Before, u.Reason = facts.Paused, facts.RollingForward, "it was to start paused"
	}
	return u
}

// End returns the record of an update that ends now.
func End(u facts.Update, state facts.UpdateState, reason string, now terms.Time) facts.Update {
	u.State, u.Before, u.Reason, u.EndedAt, u.LookedAt = state, facts.NoUpdate, reason, now, 0
	return u
}

// Succeed returns the record of an update that has reached all instances now.
func Succeed(u facts.Update, now terms.Time) facts.Update {
	if u.State == facts.RollingBackward {
		return End(u, facts.RolledBack, u.Reason, now)
	}
	return End(u, facts.UpdateSucceeded, "", now)
}

// Deadline returns by when an update must get on, 0 if it need not: it is paused, has ended, or waits for its promotion
// or for room.
func Deadline(u *facts.Update, policy *terms.UpdatePolicy, waitsForUser bool) terms.Time {
	if !u.State.Rolls() || policy.ProgressDeadlineMillis == 0 || waitsForUser || u.ProgressAt == 0 {
		return 0
	}
	return u.ProgressAt + terms.Time(policy.ProgressDeadlineMillis)
}

// Steer returns the record after a user paused or resumed it, or why that cannot be.
func Steer(u facts.Update, how command.Steering, now terms.Time) (facts.Update, string) {
	switch {
	case u.State == facts.NoUpdate:
		return u, "there is no update"
	case u.State.Final():
		return u, fmt.Sprintf("the update has ended: %s", u.State)
	case how == command.Pause && u.State == facts.Paused:
		return u, "the update is paused already"
	case how == command.Pause:
		u.State, u.Before, u.Reason, u.LookedAt = facts.Paused, u.State, "a user paused it", 0
	case how == command.Resume && u.State != facts.Paused:
		return u, "the update is not paused"
	case how == command.Resume:
		u.State, u.Before, u.Reason, u.ProgressAt = u.Before, facts.NoUpdate, "", now
	case how == command.Abort:
		return End(u, facts.UpdateAborted, "a user aborted it", now), ""
	case how == command.Promote && u.Promoted:
		return u, "the update has no canaries that wait"
	}
	return u, ""
}
