package replica

import (
	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/cluster/workload"
	"starling/reconcile"
	"starling/replica/report"
	"starling/rollout"
	"starling/terms"
	"starling/terms/rules"
)

// settle asks package reconcile what becomes of a slot after something happened to the allocation of one of its seats,
// and does it. The seat's row is as it is after the event; event says what the row cannot.
func (f *fold) settle(r facts.SlotRef, slot facts.Slot, event func(*reconcile.Candidate)) {
	j := f.s.Job(r.Job)
	question := f.question(j, int(r.Task))
	var room [3]reconcile.Candidate
	all := room[:0]
	closed := question.Daemon && !f.able(j, int(r.Task), facts.NodeIndex(r.Index))
	for _, seat := range [...]facts.Seat{facts.MainSeat, facts.CanarySeat, facts.UnknownSeat} {
		row, _ := f.s.SlotAt(seatOf(r, seat))
		if seat == r.Seat {
			row = slot
		}
		c, ok := f.candidate(j, seatOf(r, seat), &row)
		if seat == r.Seat {
			event(&c)
		}
		if ok || c.Again || c.Final {
			all = append(all, c)
		}
	}
	main := seatOf(r, facts.MainSeat)
	before, _ := f.s.SlotAt(main)
	f.s.SetSlot(r, slot)
	reconcile.Reconcile(&question, []reconcile.Slot{{Index: r.Index, Closed: closed, Candidates: all}}, reconcile.Tally{},
		&f.result)
	f.deciding, f.settled = r.Job, f.settled+1
	f.obeyResult(j, r, &question)
	f.deciding = 0
	if before.Phase != facts.Failed {
		f.exhausted(main)
	}
	f.finish(r.Job)
}

// question returns what reconcile must know of a task.
func (f *fold) question(j *workload.Job, task int) reconcile.Task {
	t := reconcile.Task{
		Now: f.s.Time, Version: j.Version, Count: j.Tasks[task].Desired, Batch: j.Spec.Type == terms.Batch,
		Daemon: j.Spec.Type == terms.Daemon, Spec: j.TaskSpecOf(task, j.Version), Policy: &terms.UpdatePolicy{},
	}
	if f.s.Rules < rules.CanaryAttempts {
		t.Soon = reconcile.SoonMillis
	}
	if j.Stop || t.Spec == nil {
		t.Count = 0
	}
	if u := &j.Update; u.State != facts.NoUpdate && (!u.State.Final() || rollout.Holds(u, f.s.Rules)) {
		t.Update = reconcile.Update{ID: u.Began, Promoted: u.Promoted}
		if u.State == facts.UpdateFailed {
			t.Update.State = reconcile.UpdateFailed
		}
	}
	return t
}

// candidate returns the allocation of a seat as reconcile sees it; ok is false if the seat has none.
func (f *fold) candidate(j *workload.Job, r facts.SlotRef, slot *facts.Slot) (c reconcile.Candidate, ok bool) {
	c = reconcile.Candidate{
		Order: slot.Order, Version: slot.Version, FailedAt: slot.Since,
		Client: [facts.PhaseCount]reconcile.Client{
			facts.Assigned: reconcile.PendingClient, facts.Running: reconcile.RunningClient,
			facts.BackingOff: reconcile.PendingClient,
			facts.Stopping:   reconcile.RunningClient, facts.Unknown: reconcile.UnknownClient,
			facts.Rescheduling: reconcile.FailedClient,
			facts.Succeeded:    reconcile.CompleteClient, facts.Failed: reconcile.FailedClient,
		}[slot.Phase],
		Own: j.TaskSpecOf(int(r.Task), slot.Version), Attempts: f.attempts(r).Latest,
	}
	if slot.Phase == facts.Succeeded {
		c.Version = j.Version // what is done is as good as done by the newest
	}
	gone := slot.Health == facts.Unhealthy || f.s.Rules < rules.WellAgain // has not been ready since
	if u := &j.Update; gone && rollout.Holds(u, f.s.Rules) && slot.Version == u.To {
		c.Update = u.Began
	}
	if r.Seat == facts.CanarySeat {
		if c.CanaryOf = j.Update.Began; slot.Version != j.Update.To {
			c.CanaryOf = otherUpdate
		}
	}
	switch slot.Phase {
	case facts.Stopping:
		c.Told = true
	case facts.Running:
		c.Started = slot.Since
	case facts.Unknown:
		c.Unknown, c.UnknownSince, c.Started, c.Node = true, slot.Since, slot.Since, reconcile.NodeDisconnected
	}
	return c, slot.Order != 0 && slot.Phase != facts.Waiting && slot.Phase != facts.Stopped
}

// otherUpdate stands for an update that is over.
const otherUpdate = ^terms.Index(0)

// obeyResult does what reconcile decided about a slot. What is told to end may have ended at once, where nobody would
// hear of it: then reconcile was asked again, and the rest of this answer is void.
func (f *fold) obeyResult(j *workload.Job, r facts.SlotRef, question *reconcile.Task) {
	decision, settled := &f.result.Decisions[0], f.settled
	for _, gone := range f.result.Disconnects {
		f.unknown(r, gone.Order, decision.Until)
	}
	for _, back := range f.result.Reconnects {
		f.back(r, back.Order)
	}
	for _, stop := range f.result.Stops {
		if f.dismiss(r, &stop, decision.Main.Holder); f.settled != settled {
			return
		}
	}
	f.inherit(r, decision)
	if canary, ok := f.s.SlotAt(seatOf(r, facts.CanarySeat)); ok && j.Update.Promoted && !canary.Phase.Holds() &&
		(canary.Order == 0 || canary.Order != decision.Main.Holder) {
		f.empty(seatOf(r, facts.CanarySeat)) // it has nothing to take the main seat with
	}
	if f.fillMain(j, r, decision, question); f.settled == settled {
		f.fill(j, seatOf(r, facts.CanarySeat), &decision.Canary, question)
	}
	if f.settled == settled {
		f.awaitReturn(r, decision)
	}
}

// fillMain does what was decided about what has the main seat, or has it when it is free.
func (f *fold) fillMain(j *workload.Job, r facts.SlotRef, d *reconcile.Decision, question *reconcile.Task) {
	main, _ := f.s.SlotAt(seatOf(r, facts.MainSeat))
	canary, _ := f.s.SlotAt(seatOf(r, facts.CanarySeat))
	switch {
	case main.Order != canary.Order && d.Main.Holder != 0 && d.Main.Holder == canary.Order: // promoted, and waits
		f.fill(j, seatOf(r, facts.CanarySeat), &d.Main, question)
	case !main.ByPolicy() || d.Main.Reason == reconcile.NotWanted:
		f.fill(j, seatOf(r, facts.MainSeat), &d.Main, question)
	}
}

// awaitReturn lets whoever is still out of reach be looked at again: its job may now wait longer for it.
func (f *fold) awaitReturn(r facts.SlotRef, d *reconcile.Decision) {
	for _, seat := range [...]facts.Seat{facts.MainSeat, facts.CanarySeat, facts.UnknownSeat} {
		if slot, _ := f.s.SlotAt(seatOf(r, seat)); slot.Phase == facts.Unknown && slot.Deadline == 0 {
			slot.Deadline = d.Until
			f.s.SetSlot(seatOf(r, seat), slot)
		}
	}
}

// unknown notes that an allocation is out of reach until a time at which it is looked at again.
func (f *fold) unknown(r facts.SlotRef, order terms.Index, until terms.Time) {
	seat, slot, _ := f.s.SeatOf(r, order)
	slot.Phase, slot.Since, slot.Deadline = facts.Unknown, f.s.Time, until
	f.s.SetSlot(seat, slot)
}

// inherit gives the main seat to what it was decided to belong to, as soon as nothing else holds it, or what does is
// lost.
func (f *fold) inherit(r facts.SlotRef, d *reconcile.Decision) {
	seat, slot, ok := f.s.SeatOf(r, d.Main.Holder)
	main, _ := f.s.SlotAt(seatOf(r, facts.MainSeat))
	lost := f.unreachable(&main)
	if !ok || seat.Seat == facts.MainSeat || d.Main.Action == reconcile.Place || main.Phase.Holds() && !lost {
		return
	}
	if lost {
		main.Phase = facts.Stopped
		f.s.SetSlot(seatOf(r, facts.MainSeat), main)
		slot.Deadline = d.Until
		f.s.SetSlot(seat, slot)
	}
	if seat.Seat == facts.CanarySeat && f.s.Rules >= rules.FailedElsewhere {
		f.s.SetAttempts(r, retries.Attempts{}) // they were made with the version before
	}
	f.s.MoveSeat(seat, facts.MainSeat)
	if slot.Phase == facts.Succeeded && f.hearCompletion(r.Job, int(r.Task)) {
		f.notePolicyDue(seatOf(r, facts.MainSeat))
	}
}

// back notes that an allocation that was out of reach runs.
func (f *fold) back(r facts.SlotRef, order terms.Index) {
	seat, slot, _ := f.s.SeatOf(r, order)
	slot.Phase, slot.Deadline, slot.Health = facts.Running, 0, facts.Starting
	f.s.SetSlot(seat, slot)
	f.effect(report.Started, seat, "its node returned")
}

// dismiss stops an allocation that does not keep its seat, or the main one to its holder.
func (f *fold) dismiss(r facts.SlotRef, stop *reconcile.Stopping, holder terms.Index) {
	seat, slot, ok := f.s.SeatOf(r, stop.Order)
	canary, promoted := f.s.SlotAt(seatOf(r, facts.CanarySeat))
	switch {
	case !ok:
	case rollout.KeepsSeat(seat.Seat, stop, f.s.Rules):
	case rollout.Ended(stop, slot.Phase) || f.unreachable(&slot):
		if seat.Seat != facts.MainSeat {
			f.empty(seat)
		}
	case slot.Phase.Holds() && stop.Reason == reconcile.Moved:
		f.stop(seat, facts.ByDrain)
	case slot.Phase.Holds() && seat.Seat == facts.MainSeat && promoted && holder != 0 && holder == canary.Order:
		f.stop(seat, facts.ByUpdate)
	case slot.Phase.Holds():
		f.stop(seat, facts.ByRival)
	}
}

// unreachable tells whether the node of an allocation has left, so that no peer would report its end, and it is not
// waited for as unknown.
func (f *fold) unreachable(slot *facts.Slot) bool {
	return slot.Phase != facts.Unknown && slot.Phase.Holds() && f.s.Node(slot.Node).Peer == ""
}

// fill does with a seat what was decided about it.
func (f *fold) fill(j *workload.Job, r facts.SlotRef, v *reconcile.Verdict, question *reconcile.Task) {
	slot, ok := f.s.SlotAt(r)
	if !ok {
		return
	}
	switch {
	case v.Action == reconcile.Place && v.Reason == reconcile.AfterFailure:
		f.again(r, slot, question)
	case slot.Phase == facts.Unknown && slot.Cause != facts.NoCause:
		// It lives and is told to stop; nothing takes its place before.
	case rollout.Fills(v, &slot):
		f.follow(r, slot)
	case v.Reason == reconcile.WaitsToRetry && slot.Phase != facts.Unknown:
		slot.Phase, slot.Deadline = facts.Rescheduling, v.Until
		f.s.SetSlot(r, slot)
		f.effect(report.BackingOff, r, v.Reason.String())
	case v.Reason.GivenUp():
		slot.Phase, slot.Health, slot.Deadline, slot.Cause = facts.Failed, facts.Unhealthy, 0, facts.NoCause
		f.s.SetSlot(r, slot)
	case v.Reason == reconcile.NotWanted && !slot.Phase.Final() && slot.Phase != facts.Stopping:
		slot.Cause = facts.ByScale
		f.vacate(r, slot)
	}
}

// hasCanary tells whether the attempts of a slot are those of a canary beside the instance of a seat.
func (f *fold) hasCanary(r facts.SlotRef) bool {
	_, beside := f.s.SlotAt(seatOf(r, facts.CanarySeat))
	return beside && r.Seat != facts.CanarySeat && f.s.Rules >= rules.CanaryAttempts
}

// attempts are those of the instance in a seat; what has a canary beside it is tried again as if it never had been.
func (f *fold) attempts(r facts.SlotRef) retries.Attempts {
	if f.hasCanary(r) {
		return retries.Attempts{}
	}
	return f.s.Job(r.Job).Tasks[r.Task].Attempts(r.Index)
}

// empty takes what is in a seat away, with the attempts of a canary.
func (f *fold) empty(r facts.SlotRef) {
	if f.s.SetSlot(r, facts.Slot{}); r.Seat == facts.CanarySeat && f.s.Rules >= rules.CanaryAttempts {
		f.s.SetAttempts(r, retries.Attempts{})
	}
}

// again lets a slot look for another node after a failure, and remembers the attempt.
func (f *fold) again(r facts.SlotRef, slot facts.Slot, question *reconcile.Task) {
	f.outcome.Counts.Rescheduled++
	if !f.hasCanary(r) {
		policy, before := &question.Spec.Reschedule, f.attempts(r)
		next := reconcile.Attempt{At: f.s.Time, DelayMillis: reconcile.NextDelay(policy, before.Latest, slot.Since)}
		f.s.SetAttempts(r, retries.Attempts{Made: before.Made + 1,
			Latest: reconcile.Inherit(nil, policy, before.Latest, next)})
	}
	if slot.Phase == facts.Unknown {
		// Of two that are out of reach the older is given up.
		f.s.SetSlot(seatOf(r, facts.UnknownSeat), facts.Slot{})
		version := slot.Version
		slot.Deadline = slot.Since + terms.Time(f.s.Job(r.Job).TaskSpecOf(int(r.Task), version).Disconnect.LostAfterMillis)
		f.s.SetSlot(r, slot)
		f.s.MoveSeat(r, facts.UnknownSeat)
		slot, _ = f.s.SlotAt(r)
		slot.Version = version
	}
	slot.Failures = 0
	f.wait(r, slot, facts.AvoidNode)
}
