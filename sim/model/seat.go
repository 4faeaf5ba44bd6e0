package model

import (
	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/command"
	"starling/reconcile"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

func (m *Model) reports(writer terms.PeerID, all []command.Report) bool {
	node := m.nodeOf(writer.Node())
	for i := range all {
		if s := m.find(all[i].Slot, all[i].Order); s != nil && s.Node == node.number {
			m.report(s, &all[i])
		}
	}
	return true
}

// find returns the seat of a slot that has the allocation of an order, nil if none has.
func (m *Model) find(r facts.SlotRef, order terms.Index) *seat {
	for _, j := range m.Jobs {
		if j.ID == r.Job && int(r.Task) < len(j.tasks) && int(r.Index) < len(j.tasks[r.Task].slots) {
			return j.tasks[r.Task].slots[r.Index].ordered(order)
		}
	}
	return nil
}

func (m *Model) report(s *seat, news *command.Report) {
	if news.Ended == facts.OutputLost {
		m.outputLost(s)
		return
	}
	if !s.Phase.Holds() || s.Phase == facts.BackingOff {
		return
	}
	s.job().touched = true
	if u := &s.job().update; s.Phase == facts.Assigned && u.State.Rolls() && s.Version == u.To && u.ProgressAt == 0 {
		u.ProgressAt = m.time
	}
	switch {
	case news.Ended != facts.NotEnded:
		m.over(s, news)
	case s.Phase == facts.Unknown:
		m.returned(s, news.Ready)
	case s.Phase == facts.Assigned:
		row := s.Slot
		row.Phase, row.Since = facts.Running, m.time
		m.put(s, row)
		m.ready(s, news.Ready)
	case s.Phase == facts.Running:
		m.ready(s, news.Ready)
	}
}

// ready notes whether a running instance passes its checks; if that need not hold for a while it is healthy.
func (m *Model) ready(s *seat, ready bool) {
	row, by := s.Slot, reading.HealthyBy(s.job().newest(), &s.job().update, s.Version, m.time)
	if !ready && reading.NotReady(s.spec(), &row, by, m.time) {
		m.put(s, row)
	}
	if !ready || s.Health == facts.Ready || s.Health == facts.Healthy {
		return
	}
	row.Health, row.Since = facts.Ready, m.time
	enough := m.time + terms.Time(s.job().newest().Update.MinHealthyMillis)
	if row.Deadline == 0 || enough <= row.Deadline {
		row.Deadline = enough
	}
	m.put(s, row)
	if enough == m.time {
		m.judge(s)
	}
}

// judge decides on an instance whose time has come.
func (m *Model) judge(s *seat) {
	j, row := s.job(), s.Slot
	row.Deadline = 0
	most := terms.Time(s.spec().MaxRunMillis)
	switch {
	case row.Health == facts.Healthy && most > 0 && row.Since+most <= m.time:
		m.put(s, row)
		m.stop(s, facts.ByRunTime)
		return
	case row.Health == facts.Healthy && most > 0:
		row.Deadline = row.Since + most
	case row.Health == facts.Healthy:
	case row.Health == facts.Ready && row.Since+terms.Time(j.newest().Update.MinHealthyMillis) <= m.time:
		row.Health = facts.Healthy
		if most > 0 {
			row.Deadline = row.Since + most
		}
		if j.update.State.Rolls() && row.Version == j.update.To {
			j.update.ProgressAt = m.time
		}
	default:
		row.Health = facts.Unhealthy
	}
	m.put(s, row)
}

// seatDue does what is due about a seat.
func (m *Model) seatDue(s *seat) {
	row := s.Slot
	if s.byPolicy() {
		m.policyDue(s)
		return
	}
	switch row.Phase {
	case facts.BackingOff:
		if row.Deadline = m.time + 1; s.slot.ordered(m.index) == nil {
			row.Phase, row.Deadline, row.Order, row.Since = facts.Assigned, 0, m.index, m.time
		}
		m.put(s, row)
	case facts.Unknown:
		m.awayDue(s)
	case facts.Rescheduling:
		row.Deadline = 0
		m.settle(s, row, func(c *reconcile.Candidate) { c.Due = true })
	case facts.Assigned, facts.Running:
		m.judge(s)
	default:
		row.Deadline = 0
		m.put(s, row)
	}
}

// awayDue ends the wait for an instance that is out of reach: it has stopped itself by now, or another node is looked
// for.
func (m *Model) awayDue(s *seat) {
	switch {
	case s.spec().Disconnect.StopAfterMillis == 0:
		row := s.Slot
		row.Deadline = 0
		m.settle(s, row, func(c *reconcile.Candidate) { c.Due = true })
		if left := s.slot.ordered(row.Order); left != nil { // unless it is out of reach still, or another took its place
			m.evicted(left)
		}
	case s.Cause != facts.NoCause:
		m.vacate(s, s.Slot)
	default:
		m.wait(s, s.Slot, facts.AnyNode)
		m.evicted(s)
	}
}

// over decides what follows the end of an allocation.
func (m *Model) over(s *seat, news *command.Report) {
	row := s.Slot
	row.Failures = m.failuresOf(s)
	row.Ended, row.ExitCode, row.Since, row.Deadline = news.Ended, news.ExitCode, m.time, 0
	asked := row.Phase == facts.Stopping || row.Phase == facts.Unknown && row.Cause != facts.NoCause
	done := s.job().newest().Type == terms.Batch && news.Ended == facts.ByItself && news.ExitCode == 0
	switch {
	case asked:
		m.vacate(s, row)
	case news.Ended == facts.NodeLost:
		m.wait(s, row, facts.AnyNode)
		m.evicted(s)
	case done:
		m.succeed(s, row)
	default:
		m.failed(s, row, news)
	}
}

// failuresOf returns how often in a row an instance has failed that ends now: none before count if it has run for long.
func (m *Model) failuresOf(s *seat) uint32 {
	if s.Phase == facts.Running && m.time >= s.Since+terms.Time(s.spec().Restart.ResetMillis) {
		return 0
	}
	return s.Failures
}

// failed decides what follows a failure: it is started again on its node while it has restarts, then reconcile decides.
func (m *Model) failed(s *seat, row facts.Slot, news *command.Report) {
	j := s.job()
	s.slot.task.failure = facts.Failure{
		Index: s.slot.index, Order: row.Order, At: m.time, Ended: news.Ended, ExitCode: news.ExitCode, Detail: news.Detail,
	}
	row.Failures++
	most, failures := j.newest().Update.AttemptsMax, row.Failures
	if m.rules >= rules.CanaryAttempts || s.kind == facts.MainSeat && m.rules >= rules.FailedElsewhere {
		failures += m.attempts(s).Made
	}
	switch {
	case j.update.State.Rolls() && row.Version == j.update.To && most > 0 && failures >= most:
		row.Health = facts.Unhealthy
	case row.Health != facts.Unhealthy:
		row.Health = facts.Starting
	}
	unknown := row.Phase == facts.Unknown
	if !unknown && m.failedByPolicy(s, row, lifecycle.InstanceFailed) {
		return
	}
	if unknown || s.outOfRestarts(row.Failures, row.Ended) || s.slot.index >= s.slot.task.desired {
		row.Phase = facts.Failed
		m.settle(s, row, func(c *reconcile.Candidate) { c.Unknown = unknown })
		return
	}
	row.Phase, row.Deadline = facts.BackingOff, m.time+s.restartDelay(row.Failures)
	m.put(s, row)
}

// succeed notes that batch work is done; whatever else is at it is not needed any more.
func (m *Model) succeed(s *seat, row facts.Slot) {
	row.Phase, row.Failures, row.Health, row.Cause = facts.Succeeded, 0, facts.Starting, facts.NoCause
	if s.kind != facts.MainSeat {
		m.settle(s, row, func(*reconcile.Candidate) {})
		return
	}
	m.put(s, row)
	m.hearSuccess(s)
}

// hearSuccess lets a policy decide what follows when a task is complete.
func (m *Model) hearSuccess(main *seat) {
	if m.completed(main.slot.task) {
		m.heeds = append(m.heeds, main)
	}
}

// lose decides what becomes of an allocation whose node left.
func (m *Model) lose(s *seat) {
	if s.Phase == facts.Unknown {
		return
	}
	row, rule := s.Slot, s.spec().Disconnect
	row.Ended, row.ExitCode, row.Failures = facts.NodeLost, 0, m.failuresOf(s)
	switch {
	case rule.StopAfterMillis > 0 && row.Phase == facts.BackingOff:
		m.wait(s, row, facts.AnyNode)
		m.evicted(s)
	case rule.StopAfterMillis > 0:
		row.Phase, row.Since = facts.Unknown, m.time
		row.Deadline = m.time + terms.Time(rule.StopAfterMillis) + terms.Time(s.spec().StopGraceMillis) + slackMillis
		m.put(s, row)
	case row.Phase == facts.Stopping:
		row.Since = m.time
		m.vacate(s, row)
	case rule.LostAfterMillis > 0:
		m.settle(s, row, func(c *reconcile.Candidate) { c.Node = reconcile.NodeDisconnected })
	default:
		m.settle(s, row, func(c *reconcile.Candidate) { c.Node = reconcile.NodeGone })
		m.evicted(s)
	}
}

// slackMillis is what an instance gets to stop itself beyond its time.
const slackMillis = 5000

// returned takes the news that an allocation still runs that was out of reach.
func (m *Model) returned(s *seat, ready bool) {
	if row := s.Slot; row.Cause != facts.NoCause {
		row.Phase, row.Deadline = facts.Stopping, 0
		m.put(s, row)
		return
	}
	order, slot := s.Order, s.slot
	m.settle(s, s.Slot, func(c *reconcile.Candidate) { c.Client, c.Node = reconcile.RunningClient, reconcile.NodeReady })
	if slot.gone() {
		return
	}
	if one := slot.ordered(order); one != nil && one.Phase == facts.Running {
		m.ready(one, ready)
	}
}

// stop tells the allocation of a seat to end. What may run out of reach is waited for; what does not run is over at
// once.
func (m *Model) stop(s *seat, cause facts.Cause) {
	row := s.Slot
	row.Cause = cause
	if cause != facts.ByRunTime {
		row.Failures = m.failuresOf(s)
	}
	if row.Phase == facts.Assigned || row.Phase == facts.Running {
		m.told[allocation{s.slot.main().ref(), s.Order}] = cause
	}
	switch {
	case row.Phase == facts.Assigned || row.Phase == facts.Running || row.Phase == facts.Stopping:
		if row.Phase != facts.Stopping || m.rules < rules.StopDelays {
			row.Since = m.time
		}
		row.Phase, row.Deadline = facts.Stopping, 0
		m.put(s, row)
	case s.mayLive():
		m.put(s, row)
	default:
		m.vacate(s, row)
	}
}

// vacate asks what follows an allocation that was told to stop.
func (m *Model) vacate(s *seat, row facts.Slot) {
	cause := row.Cause
	row.Phase, row.Since, row.Deadline = facts.Stopped, m.time, 0
	if cause == facts.ByPreemption {
		row.Ended = facts.Preempted
	}
	final := m.final(s, cause)
	if final && cause == facts.ByRunTime {
		row.Ended, row.Health = facts.OutOfTime, facts.Unhealthy
		row.Failures++
		if m.failedByPolicy(s, row, lifecycle.InstanceFailed) {
			return
		}
	}
	m.settle(s, row, func(c *reconcile.Candidate) {
		if c.Told, c.Again = !final, !final; final {
			c.Client, c.Final = reconcile.FailedClient, true
		}
	})
	switch {
	case s.Phase != facts.Stopped:
	case s.kind != facts.MainSeat:
		m.emptySeat(s)
	case s.slot.wanted():
		m.await(s, s.Slot)
	default:
		s.Cause = facts.NoCause
	}
	if cause.Evicts() {
		m.evicted(s)
	}
}

// await lets a seat wait for what follows the allocation that it had, by why that was told to stop.
func (m *Model) await(s *seat, row facts.Slot) {
	switch cause := row.Cause; {
	case cause.Anew():
		m.anew(s, row)
	case cause == facts.ByUpdate:
		m.renew(s, row)
	case cause == facts.ByRelease:
		if row.Order, row.Node = 0, 0; m.volumes.On() {
			m.lastJob++
			m.volumes.Renew(s.slot.name(), s.job().ID, m.lastJob, m.index)
		}
		m.wait(s, row, facts.AnyNode)
	default:
		preferences := map[facts.Cause]facts.NodePreference{facts.ByRestart: facts.PreferNode, facts.ByMove: facts.AvoidNode}
		m.wait(s, row, preferences[cause])
	}
}

// final tells whether a cause ends a seat for good.
func (m *Model) final(s *seat, cause facts.Cause) bool {
	eviction, _ := m.policy(s, lifecycle.InstanceEvicted, 0)
	killed := s.job().newest().KillOnPreempt && eviction == nil
	return s.slot.wanted() && (cause == facts.ByRunTime || cause == facts.ByPreemption && killed)
}

// renew lets a seat wait for an instance of the newest version.
func (m *Model) renew(s *seat, row facts.Slot) {
	preference := facts.AnyNode
	if s.job().newest().Update.SameNode {
		preference = facts.PreferNode
	}
	row.Version, row.Failures, row.Health = 0, 0, facts.Starting
	s.slot.attempts = retries.Attempts{}
	m.wait(s, row, preference)
}

// wait lets a seat wait for a node: a daemon's for its own, one with volumes for the one that has them.
func (m *Model) wait(s *seat, row facts.Slot, preference facts.NodePreference) {
	j, t := s.job(), s.slot.task
	if s.kind == facts.UnknownSeat ||
		s.kind == facts.CanarySeat && (j.update.State.Final() || row.Version != j.version()) {
		m.emptySeat(s)
		return
	}
	spec := t.spec(row.Version)
	row.Phase, row.Preference, row.Deadline, row.Since, row.Cause = facts.Waiting, preference, 0, m.time, facts.NoCause
	done := reading.Updated(&j.update, m.rules)
	if s.kind == facts.MainSeat && (done || row.Version == 0 || m.asGood(t, row.Version)) {
		if row.Version = 0; m.hasCanary(s, rules.OncePerEntry) {
			row.Version = j.version()
		}
	}
	if row.Health != facts.Unhealthy {
		row.Health = facts.Starting
	}
	switch {
	case j.newest().Type == terms.Daemon:
		row.Preference, row.Node = facts.OnlyNode, facts.NodeIndex(s.slot.index)
		if !m.able(t, m.Nodes[row.Node]) {
			row.Phase, row.Version = facts.Stopped, j.version()
		}
	case row.Order != 0 && t.tied(spec):
		row.Preference = facts.OnlyNode
	}
	m.put(s, row)
}
