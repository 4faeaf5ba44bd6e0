package replica

import (
	"fmt"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/command"
	"starling/reconcile"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/rollout"
	"starling/schedule/place"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// reportTasks takes the news of allocations. News of an allocation that is none of the slot's present ones is void.
func (f *fold) reportTasks(c *command.ReportTasks) report.Result {
	if r := f.author(c.Peer); r.Refused() {
		return r
	}
	if r := f.member(); r.Refused() {
		return r
	}
	for i := range c.Reports {
		f.report(&c.Reports[i])
	}
	return report.Result{}
}

func (f *fold) report(news *command.Report) {
	r, slot, ok := f.s.SeatOf(news.Slot, news.Order)
	if ok && news.Ended == facts.OutputLost {
		f.outputLost(r, slot)
		return
	}
	if !ok || !slot.Phase.Holds() || slot.Phase == facts.BackingOff || slot.Node != f.writer.Index {
		return
	}
	f.touch(r.Job)
	f.gotRoom(r, &slot)
	switch {
	case news.Ended != facts.NotEnded:
		f.ended(r, news, slot)
	case slot.Phase == facts.Unknown:
		f.returned(r, news.Ready)
	case slot.Phase == facts.Assigned:
		slot.Phase, slot.Since = facts.Running, f.s.Time
		f.ready(r, slot, news.Ready)
		f.outcome.Counts.Started++
		f.effect(report.Started, r, "")
	case slot.Phase == facts.Running && news.Ready:
		f.ready(r, slot, true)
	default:
		if next, changes := f.s.Job(r.Job).Unready(r, slot, f.s.Time); changes {
			f.s.SetSlot(r, next)
			f.effect(report.Unready, r, news.Detail)
		}
	}
}

// ready keeps the row of a running instance, and notes whether it has passed its checks. It is healthy when that has
// held for long enough.
func (f *fold) ready(r facts.SlotRef, slot facts.Slot, ready bool) {
	if !ready || slot.Health == facts.Ready || slot.Health == facts.Healthy {
		f.s.SetSlot(r, slot)
		return
	}
	enough := terms.Time(f.s.Job(r.Job).Spec.Update.MinHealthyMillis)
	slot.Health, slot.Since = facts.Ready, f.s.Time
	switch {
	case enough == 0:
		f.judge(r, slot)
		return
	case slot.Deadline == 0 || f.s.Time+enough <= slot.Deadline:
		slot.Deadline = f.s.Time + enough
	}
	f.s.SetSlot(r, slot)
}

// judge decides on the health of an instance whose time has come: it has been ready for long enough, or it is
// too late.
func (f *fold) judge(r facts.SlotRef, slot facts.Slot) {
	j := f.s.Job(r.Job)
	enough := slot.Since + terms.Time(j.Spec.Update.MinHealthyMillis)
	slot.Deadline = 0
	most := terms.Time(j.TaskSpecOf(int(r.Task), slot.Version).MaxRunMillis)
	switch {
	case slot.Health == facts.Ready && enough <= f.s.Time:
		slot.Health = facts.Healthy
		if most > 0 {
			slot.Deadline = slot.Since + most
		}
		f.s.SetSlot(r, slot)
		f.progressed(j, &slot)
		return
	case slot.Health == facts.Healthy && most > 0 && slot.Since+most > f.s.Time:
		slot.Deadline = slot.Since + most // it was raised meanwhile
	case slot.Health == facts.Healthy && most > 0:
		f.s.SetSlot(r, slot)
		f.stop(r, facts.ByRunTime)
		return
	case slot.Health != facts.Healthy:
		slot.Health = facts.Unhealthy
		f.outcome.Counts.Unhealthy++
		f.effect(report.Unhealthy, r, "it was not healthy in time")
	}
	f.s.SetSlot(r, slot)
}

// ended decides what comes after the end of an allocation.
func (f *fold) ended(r facts.SlotRef, news *command.Report, slot facts.Slot) {
	j := f.s.Job(r.Job)
	told := slot.Phase == facts.Stopping || slot.Phase == facts.Unknown && slot.Cause != facts.NoCause
	f.resetFailures(r, &slot)
	slot.Ended, slot.ExitCode, slot.Since, slot.Deadline = news.Ended, news.ExitCode, f.s.Time, 0
	f.outcome.Counts.End(told, news)
	f.effect(report.Ended, r, report.Ending(news))
	switch {
	case told:
		f.vacate(r, slot)
		return
	case news.Ended == facts.NodeLost:
		// It stopped with its node, or because its node was cut off: that is no failure of its own.
		f.wait(r, slot, facts.AnyNode)
		f.evicted(r)
		f.finish(r.Job)
		return
	}
	if j.Spec.Type == terms.Batch && news.Ended == facts.ByItself && news.ExitCode == 0 {
		f.succeed(r, slot)
		return
	}
	f.failed(r, news, slot)
}

// resetFailures forgets the failures of an instance that has run for long enough when it ends, however that is.
func (f *fold) resetFailures(r facts.SlotRef, slot *facts.Slot) {
	if slot.Phase == facts.Running && f.s.Time-slot.Since >=
		terms.Time(f.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version).Restart.ResetMillis) {
		slot.Failures = 0
	}
}

// failed decides what comes after a failure: a start on the same node as long as the task has restarts, then whatever
// reconcile says.
func (f *fold) failed(r facts.SlotRef, news *command.Report, slot facts.Slot) {
	j := f.s.Job(r.Job)
	f.s.SetFailure(j.ID, int(r.Task), facts.Failure{
		Index: r.Index, Order: slot.Order, At: f.s.Time, Ended: news.Ended, ExitCode: news.ExitCode, Detail: news.Detail,
	})
	slot.Failures++
	if slot.Health != facts.Unhealthy {
		slot.Health = facts.Starting
	}
	failures := slot.Failures
	if f.s.Rules >= rules.FailedElsewhere && (r.Seat == facts.MainSeat || f.s.Rules >= rules.CanaryAttempts) {
		failures += f.attempts(r).Made // each of them comes after a failure, or more
	}
	if j.Update.State.Rolls() && slot.Version == j.Update.To &&
		rollout.InstanceFailed(failures, j.Spec.Update.AttemptsMax) {
		slot.Health = facts.Unhealthy
	}
	unknown := slot.Phase == facts.Unknown
	if !unknown && f.failedByPolicy(r, slot, lifecycle.InstanceFailed) {
		return
	}
	if unknown || r.Index >= j.Tasks[r.Task].Desired || f.spent(r, &slot) {
		slot.Phase = facts.Failed
		f.settle(r, slot, func(c *reconcile.Candidate) { c.Unknown = unknown })
		return
	}
	f.delay(r, slot, terms.Time(j.TaskSpecOf(int(r.Task), slot.Version).Restart.Delay(slot.Failures)))
}

// delay lets an instance that failed start again on its node later.
func (f *fold) delay(r facts.SlotRef, slot facts.Slot, delay terms.Time) {
	slot.Phase, slot.Deadline = facts.BackingOff, f.s.Time+delay
	f.s.SetSlot(r, slot)
	f.effect(report.BackingOff, r, fmt.Sprintf("failure %d in a row: starts again in %d ms", slot.Failures, delay))
}

// succeed notes that batch work is done. Whatever else has a seat of the slot is not needed any more.
func (f *fold) succeed(r facts.SlotRef, slot facts.Slot) {
	f.bequeath(r, f.s.Rules >= rules.SharesFollow && f.s.Job(r.Job).Spec.Shares())
	slot.Phase, slot.Failures, slot.Health, slot.Cause = facts.Succeeded, 0, facts.Starting, facts.NoCause
	if r.Seat != facts.MainSeat {
		f.settle(r, slot, func(*reconcile.Candidate) {})
		return
	}
	f.s.SetSlot(r, slot)
	if f.hearCompletion(r.Job, int(r.Task)) {
		f.notePolicyDue(r)
	}
	f.finish(r.Job)
}

func seatOf(r facts.SlotRef, seat facts.Seat) facts.SlotRef {
	r.Seat = seat
	return r
}

// lose decides what becomes of an allocation whose node left.
func (f *fold) lose(r facts.SlotRef) {
	slot, _ := f.s.SlotAt(r)
	if slot.Phase == facts.Unknown {
		return
	}
	f.touch(r.Job)
	spec := f.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version)
	f.resetFailures(r, &slot)
	slot.Ended, slot.ExitCode = facts.NodeLost, 0
	f.outcome.Counts.Ended[facts.NodeLost]++
	f.effect(report.Lost, r, "its node left")
	switch {
	case spec.StopsItself() && slot.Phase == facts.BackingOff: // nothing of it lives that would have to stop itself
		f.wait(r, slot, facts.AnyNode)
		f.evicted(r)
	case spec.StopsItself():
		// Nothing takes its place until it has certainly stopped itself, whatever is to come then.
		slot.Phase, slot.Since = facts.Unknown, f.s.Time
		slot.Deadline = f.s.Time + selfStopTime(spec)
		f.s.SetSlot(r, slot)
	case slot.Phase == facts.Stopping:
		slot.Since = f.s.Time
		f.vacate(r, slot)
	default:
		f.settle(r, slot, func(c *reconcile.Candidate) {
			c.Node = reconcile.NodeGone
			if spec.Disconnect.LostAfterMillis > 0 {
				c.Node = reconcile.NodeDisconnected
			}
		})
		if spec.Disconnect.LostAfterMillis == 0 {
			f.evicted(r)
		}
	}
}

// selfStopSlackMillis is what is added for clocks that differ and nodes that are slow.
const selfStopSlackMillis = 5000

// selfStopTime returns after which time without its node an instance has certainly stopped itself.
func selfStopTime(spec *terms.Task) terms.Time {
	return terms.Time(spec.Disconnect.StopAfterMillis) + terms.Time(spec.StopGraceMillis) + selfStopSlackMillis
}

// returned takes the news that an allocation still runs whose node had left.
func (f *fold) returned(r facts.SlotRef, ready bool) {
	slot, _ := f.s.SlotAt(r)
	if slot.Cause != facts.NoCause {
		slot.Phase, slot.Deadline = facts.Stopping, 0
		f.s.SetSlot(r, slot)
		return
	}
	f.settle(r, slot, func(c *reconcile.Candidate) { c.Client, c.Node = reconcile.RunningClient, reconcile.NodeReady })
	if seat, slot, ok := f.s.SeatOf(r, slot.Order); ok && slot.Phase == facts.Running {
		f.ready(seat, slot, ready)
	}
}

// stop tells a node to end the allocation of a seat, if it has it; otherwise the seat is vacant at once.
func (f *fold) stop(r facts.SlotRef, cause facts.Cause) {
	slot, _ := f.s.SlotAt(r)
	if cause != facts.ByRunTime { // to run for too long is a failure itself
		f.resetFailures(r, &slot)
	}
	slot.Cause = cause
	switch slot.Phase {
	case facts.Assigned, facts.Running, facts.Stopping:
		if slot.Phase != facts.Stopping || f.s.Rules < rules.StopDelays { // its delay has begun with the first order
			slot.Since = f.s.Time
		}
		slot.Phase, slot.Deadline = facts.Stopping, 0
		f.s.SetSlot(r, slot)
		f.effect(report.Stopping, r, cause.String())
	case facts.Unknown:
		if f.s.Job(r.Job).MayLive(r, &slot) {
			f.s.SetSlot(r, slot)
			return
		}
		f.vacate(r, slot)
	default:
		f.vacate(r, slot)
	}
}

// vacate asks what becomes of a seat whose allocation is over because it was told to stop. As long as its job wants
// one, another follows it, unless it was told to give its place up for good.
func (f *fold) vacate(r facts.SlotRef, slot facts.Slot) {
	cause := slot.Cause
	f.bequeath(r, cause.Succeeds() && f.s.Rules >= rules.Successors)
	slot.Phase, slot.Since, slot.Deadline = facts.Stopped, f.s.Time, 0
	if cause == facts.ByPreemption {
		slot.Ended = facts.Preempted // whatever its node saw
	}
	final := f.endsPlace(r, cause)
	if final && cause == facts.ByRunTime {
		slot.Ended, slot.Health = facts.OutOfTime, facts.Unhealthy
		slot.Failures++
		if f.failedByPolicy(r, slot, lifecycle.InstanceFailed) {
			return
		}
	}
	f.settle(r, slot, func(c *reconcile.Candidate) {
		if c.Told, c.Again = !final, !final; final {
			c.Client, c.Final = reconcile.FailedClient, true
		}
	})
	switch left, ok := f.s.SlotAt(r); {
	case !ok || left.Phase != facts.Stopped:
	case r.Seat != facts.MainSeat:
		f.empty(r)
	case f.has(r): // its task is to go, but has its slots still
		f.follow(r, left)
	default:
		left.Cause = facts.NoCause
		f.s.SetSlot(r, left)
	}
	if cause.Evicts() {
		f.evicted(r)
	}
	f.finish(r.Job)
}

// bequeath notes that the room of an instance is that of what takes its place, if it has a successor.
func (f *fold) bequeath(r facts.SlotRef, succeeds bool) {
	if slot, _ := f.s.SlotAt(r); succeeds && r.Seat == facts.MainSeat && slot.Phase.Holds() {
		f.predecessors = append(f.predecessors, place.Predecessor{Slot: r, Node: slot.Node,
			Spec: f.s.Job(r.Job).TaskSpecOf(int(r.Task), slot.Version)})
	}
}

// endsPlace tells whether nothing follows an instance that is wanted still and was told to stop: it ran for as long as
// it may, or its job ends what gives way.
func (f *fold) endsPlace(r facts.SlotRef, cause facts.Cause) bool {
	return f.has(r) && (cause == facts.ByRunTime ||
		cause == facts.ByPreemption && f.s.Job(r.Job).Spec.KillOnPreempt && !f.hearsEviction(r))
}

// has tells whether a job goes on and has a slot.
func (f *fold) has(r facts.SlotRef) bool {
	j := f.s.Job(r.Job)
	return !j.Stop && r.Index < j.Tasks[r.Task].Desired
}

// follow lets a slot wait for what follows the allocation that it had: where, and of which version, is said by why that
// was told to stop, if it was.
func (f *fold) follow(r facts.SlotRef, slot facts.Slot) {
	switch cause := slot.Cause; {
	case cause == facts.ByUpdate:
		f.renew(r, slot)
	case cause.Anew():
		f.anew(r, slot)
	case cause == facts.ByRestart:
		f.wait(r, slot, facts.PreferNode)
	case cause == facts.ByMove:
		f.wait(r, slot, facts.AvoidNode)
	case cause == facts.ByRelease:
		slot.Order, slot.Node = 0, 0 // as if it had never had a node
		storage.Renew(f.s, f.s.NameOf(r), r.Job)
		f.wait(r, slot, facts.AnyNode)
	default:
		f.wait(r, slot, facts.AnyNode)
	}
}

// renew lets a slot wait for an instance of the newest version.
func (f *fold) renew(r facts.SlotRef, slot facts.Slot) {
	prefer := facts.AnyNode
	if f.s.Job(r.Job).Spec.Update.SameNode {
		prefer = facts.PreferNode
	}
	slot.Version, slot.Failures, slot.Health = 0, 0, facts.Starting
	f.s.SetAttempts(r, retries.Attempts{})
	f.wait(r, slot, prefer)
}

// wait lets a slot wait for a node, which is its last one if its volumes are there.
func (f *fold) wait(r facts.SlotRef, slot facts.Slot, prefer facts.NodePreference) {
	j := f.s.Job(r.Job)
	over := j.Update.State.Final() || slot.Version != j.Version // the update that a canary was of
	if r.Seat == facts.UnknownSeat || r.Seat == facts.CanarySeat && over {
		f.empty(r)
		return
	}
	spec := j.TaskSpecOf(int(r.Task), slot.Version)
	slot.Phase, slot.Preference, slot.Deadline, slot.Since, slot.Cause = facts.Waiting, prefer, 0, f.s.Time, facts.NoCause
	if r.Seat == facts.MainSeat && rollout.Newest(j, int(r.Task), slot.Version, f.s.Rules) {
		if slot.Version = 0; f.hasCanary(r) && f.s.Rules >= rules.OncePerEntry {
			slot.Version = j.Version
		}
	}
	if slot.Health != facts.Unhealthy {
		slot.Health = facts.Starting
	}
	switch {
	case j.Spec.Type == terms.Daemon:
		slot.Preference, slot.Node = facts.OnlyNode, facts.NodeIndex(r.Index)
		if !f.able(j, int(r.Task), slot.Node) {
			slot.Phase, slot.Version = facts.Stopped, j.Version
		}
	case slot.Order != 0 && j.Tied(int(r.Task), spec, f.s.Rules):
		slot.Preference = facts.OnlyNode
	}
	f.s.SetSlot(r, slot)
}
