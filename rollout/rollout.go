package rollout

import (
	"fmt"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/reconcile"
	"starling/terms"
	"starling/terms/rules"
)

// InstanceFailed tells whether an instance that failed so often in a row counts as failed; 0 attempts are without end.
func InstanceFailed(failures, attemptsMax uint32) bool {
	return attemptsMax > 0 && failures >= attemptsMax
}

// Failed tells whether so many failed instances fail an update.
func Failed(failed, failuresMax uint32) bool {
	return failuresMax != terms.RestartsUnlimited && failed > failuresMax
}

// Failing says why the update of a job has failed, "" if it has not.
func Failing(j *workload.Job) string {
	failed, lost := uint32(0), uint32(0)
	for _, t := range j.Tasks {
		failed += t.New[facts.Unhealthy] + t.Canaries[facts.Unhealthy]
		lost += t.Secondary[facts.Failed]
	}
	switch most := j.Spec.Update.FailuresMax; {
	case Failed(failed, most):
		return fmt.Sprintf("instances that failed: %d, allowed: %d", failed, most)
	case lost > 0 && !j.Update.Promoted:
		return "a canary failed for good"
	}
	return ""
}

// Spare returns how many well instances of a task may be taken away at this moment for a batch of that size. Instances
// that an update allows to fail do not use up its batch.
func Spare(t *workload.Task, batch, failuresMax uint32) uint32 {
	ill := t.Desired - min(t.New[facts.Healthy]+t.Old[facts.Healthy], t.Desired)
	ill -= min(ill, t.New[facts.Unhealthy], failuresMax)
	return batch - min(batch, ill)
}

// Fills tells whether what a slot had is over, so that it waits, or is empty as long as its node is closed.
func Fills(v *reconcile.Verdict, slot *facts.Slot) bool {
	over := slot.Phase == facts.Stopped && slot.Cause != facts.NoCause
	place, closed := v.Action == reconcile.Place && slot.Phase != facts.Waiting,
		v.Reason == reconcile.NodeClosed && (over || slot.Phase != facts.Stopped)
	return (place || closed) && slot.Phase != facts.Stopping
}

// Newest tells whether what waits in a main seat begins in the newest version: its own is that, or as good, or no
// update will get to it any more.
func Newest(j *workload.Job, task int, version uint32, in rules.Number) bool {
	return j.Update.State == facts.UpdateSucceeded && in >= rules.NewestAfterUpdate || version == j.Version ||
		version == 0 || j.ChangeOf(task, version, in) != terms.Replace
}

// Ended tells whether an allocation that does not keep its seat has ended already.
func Ended(stop *reconcile.Stopping, phase facts.Phase) bool {
	return stop.Client == reconcile.LostClient || stop.Client == reconcile.FailedClient || phase == facts.Failed
}

// KeepsSeat tells whether an allocation that failed is tried again in the seat of a canary.
func KeepsSeat(seat facts.Seat, stop *reconcile.Stopping, in rules.Number) bool {
	return seat == facts.CanarySeat && stop.Reason == reconcile.Failed && in >= rules.CanaryAttempts
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

// Holds tells whether an update has failed so that nothing of it that fails is tried again.
func Holds(u *facts.Update, in rules.Number) bool {
	return u.State == facts.UpdateFailed && (in < rules.FirstGoesOn || u.From != 0)
}

// LookFrom returns from which slot of a task on an update looks for room with an entry: from the first, unless some
// lacked it when it was looked for last. Then it is another each time, as if drawn, so that none is left out because
// others before it have no room.
func LookFrom(index terms.Index, u *facts.Update, desired uint32) uint32 {
	if u.LookedAt == 0 || desired == 0 {
		return 0
	}
	return uint32(uint64(index)*0x9e3779b97f4a7c15>>32) % desired
}
