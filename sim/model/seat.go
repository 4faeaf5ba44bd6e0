package model

import (
	"starling/cluster"
	"starling/cluster/retries"
	"starling/command"
	"starling/reconcile"
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
func (m *Model) find(r cluster.SlotRef, order terms.Index) *seat {
	for _, j := range m.Jobs {
		if j.ID == r.Job && int(r.Task) < len(j.tasks) && int(r.Index) < len(j.tasks[r.Task].slots) {
			return j.tasks[r.Task].slots[r.Index].ordered(order)
		}
	}
	return nil
}

func (m *Model) report(s *seat, news *command.Report) {
	if news.Ended == cluster.OutputLost {
		m.outputLost(s)
		return
	}
	if !s.Phase.Holds() || s.Phase == cluster.Delayed {
		return
	}
	s.job().touched = true
	if u := &s.job().update; s.Phase == cluster.Assigned && u.State.Rolls() && s.Version == u.To && u.ProgressAt == 0 {
		u.ProgressAt = m.time
	}
	switch {
	case news.Ended != cluster.NotEnded:
		m.over(s, news)
	case s.Phase == cluster.Away:
		m.returned(s, news.Ready)
	case s.Phase == cluster.Assigned:
		row := s.Slot
		row.Phase, row.Since = cluster.Running, m.time
		m.put(s, row)
		m.ready(s, news.Ready)
	case s.Phase == cluster.Running:
		m.ready(s, news.Ready)
	}
}

// ready notes that a running instance has passed its checks; if that need not hold for a while it is healthy.
func (m *Model) ready(s *seat, ready bool) {
	if !ready || s.Health == cluster.Ready || s.Health == cluster.Healthy {
		return
	}
	row := s.Slot
	row.Health, row.Since = cluster.Ready, m.time
	enough := m.time + terms.Time(s.job().newest().Update.MinHealthyMillis)
	if row.Deadline == 0 || enough <= row.Deadline {
		row.Deadline = enough
	}
	m.put(s, row)
	if enough == m.time {
		m.judge(s)
	}
}

// judge gives the verdict on an instance whose time has come.
func (m *Model) judge(s *seat) {
	j, row := s.job(), s.Slot
	row.Deadline = 0
	most := terms.Time(s.spec().MaxRunMillis)
	switch {
	case row.Health == cluster.Healthy && most > 0 && row.Since+most <= m.time:
		m.put(s, row)
		m.stop(s, cluster.ByRunTime)
		return
	case row.Health == cluster.Healthy && most > 0:
		row.Deadline = row.Since + most
	case row.Health == cluster.Healthy:
	case row.Health == cluster.Ready && row.Since+terms.Time(j.newest().Update.MinHealthyMillis) <= m.time:
		row.Health = cluster.Healthy
		if most > 0 {
			row.Deadline = row.Since + most
		}
		if j.update.State.Rolls() && row.Version == j.update.To {
			j.update.ProgressAt = m.time
		}
	default:
		row.Health = cluster.Unhealthy
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
	case cluster.Delayed:
		if s.slot.ordered(m.index) != nil {
			row.Deadline = m.time + 1
			m.put(s, row)
			return
		}
		row.Phase, row.Deadline, row.Order, row.Since = cluster.Assigned, 0, m.index, m.time
		m.put(s, row)
	case cluster.Away:
		m.awayDue(s)
	case cluster.Postponed:
		row.Deadline = 0
		m.settle(s, row, func(c *reconcile.Candidate) { c.Due = true })
	case cluster.Assigned, cluster.Running:
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
	case s.Cause != cluster.NoCause:
		m.vacate(s, s.Slot)
	default:
		m.wait(s, s.Slot, cluster.AnyNode)
		m.evicted(s)
	}
}

// over decides what follows the end of an allocation.
func (m *Model) over(s *seat, news *command.Report) {
	row := s.Slot
	row.Failures = m.failuresOf(s)
	row.Ended, row.ExitCode, row.Since, row.Deadline = news.Ended, news.ExitCode, m.time, 0
	asked := row.Phase == cluster.Stopping || news.Ended == cluster.NodeLost && row.Cause != cluster.NoCause
	done := s.job().newest().Type == terms.Batch && news.Ended == cluster.ByItself && news.ExitCode == 0
	switch {
	case asked:
		m.vacate(s, row)
	case news.Ended == cluster.NodeLost:
		m.wait(s, row, cluster.AnyNode)
		m.evicted(s)
	case done:
		m.succeed(s, row)
	default:
		m.failed(s, row, news)
	}
}

// failuresOf returns how often in a row an instance has failed that ends now: none before count if it has run for long.
func (m *Model) failuresOf(s *seat) uint32 {
	if s.Phase == cluster.Running && m.time >= s.Since+terms.Time(s.spec().Restart.ResetMillis) {
		return 0
	}
	return s.Failures
}

// failed decides what follows a failure: it is started again on its node while it has restarts, then reconcile decides.
func (m *Model) failed(s *seat, row cluster.Slot, news *command.Report) {
	j, rule := s.job(), s.spec().Restart
	s.slot.task.failure = cluster.Failure{
		Index: s.slot.index, Order: row.Order, At: m.time, Ended: news.Ended, ExitCode: news.ExitCode, Detail: news.Detail,
	}
	row.Failures++
	most := j.newest().Update.AttemptsMax
	switch {
	case j.update.State.Rolls() && row.Version == j.update.To && most > 0 && row.Failures >= most:
		row.Health = cluster.Unhealthy
	case row.Health != cluster.Unhealthy:
		row.Health = cluster.Untried
	}
	away := row.Phase == cluster.Away
	if !away && m.failedByPolicy(s, row, lifecycle.InstanceFailed) {
		return
	}
	spent := rule.AttemptsMax != terms.RestartsUnlimited && row.Failures > rule.AttemptsMax
	if away || spent || s.slot.index >= s.slot.task.desired {
		row.Phase = cluster.Failed
		m.settle(s, row, func(c *reconcile.Candidate) { c.Away = away })
		return
	}
	row.Phase, row.Deadline = cluster.Delayed, m.time+s.restartDelay(row.Failures)
	m.put(s, row)
}

// succeed notes that batch work is done; whatever else is at it is not needed any more.
func (m *Model) succeed(s *seat, row cluster.Slot) {
	row.Phase, row.Failures, row.Health, row.Cause = cluster.Succeeded, 0, cluster.Untried, cluster.NoCause
	main := s.slot.main()
	if s != main {
		m.put(s, cluster.Slot{})
		if main.Phase.Holds() {
			m.stop(main, cluster.ByRival)
			return
		}
	}
	m.put(main, row)
	if m.completed(main.slot.task) {
		m.heeds = append(m.heeds, main)
	}
}

// lose decides what becomes of an allocation whose node left.
func (m *Model) lose(s *seat) {
	if s.Phase == cluster.Away {
		return
	}
	row, rule := s.Slot, s.spec().Disconnect
	row.Ended, row.ExitCode, row.Failures = cluster.NodeLost, 0, m.failuresOf(s)
	switch {
	case rule.StopAfterMillis > 0 && row.Phase == cluster.Delayed:
		m.wait(s, row, cluster.AnyNode)
		m.evicted(s)
	case rule.StopAfterMillis > 0:
		row.Phase, row.Since = cluster.Away, m.time
		row.Deadline = m.time + terms.Time(rule.StopAfterMillis) + terms.Time(s.spec().StopGraceMillis) + slackMillis
		m.put(s, row)
	case row.Phase == cluster.Stopping:
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
	if row := s.Slot; row.Cause != cluster.NoCause {
		row.Phase, row.Deadline = cluster.Stopping, 0
		m.put(s, row)
		return
	}
	order, slot := s.Order, s.slot
	m.settle(s, s.Slot, func(c *reconcile.Candidate) { c.Client, c.Node = reconcile.RunningClient, reconcile.NodeReady })
	if slot.gone() {
		return
	}
	if one := slot.ordered(order); one != nil && one.Phase == cluster.Running {
		m.ready(one, ready)
	}
}

// stop tells the allocation of a seat to end. What may run out of reach is waited for; what does not run is over at
// once.
func (m *Model) stop(s *seat, cause cluster.Cause) {
	row := s.Slot
	row.Cause = cause
	if cause != cluster.ByRunTime {
		row.Failures = m.failuresOf(s)
	}
	if row.Phase == cluster.Assigned || row.Phase == cluster.Running {
		m.told[allocation{s.slot.main().ref(), s.Order}] = cause
	}
	switch {
	case row.Phase == cluster.Assigned || row.Phase == cluster.Running || row.Phase == cluster.Stopping:
		if row.Phase != cluster.Stopping || m.rules < rules.StopDelays {
			row.Since = m.time
		}
		row.Phase, row.Deadline = cluster.Stopping, 0
		m.put(s, row)
	case row.Phase == cluster.Away && s.spec().Disconnect.StopAfterMillis > 0:
		m.put(s, row)
	default:
		m.vacate(s, row)
	}
}

// over tells whether a seat beside the main one is empty for good when what it had has ended for a cause.
func (s *seat) over(cause cluster.Cause) bool {
	main := s.slot.main()
	newest, _ := main.standing()
	has := main.Phase == cluster.Waiting || newest && main.Cause != cluster.ByUpdate
	return s.kind == cluster.AwaySeat || cause == cluster.ByUpdate || cause == cluster.ByRival ||
		s.kind == cluster.CanarySeat && s.job().update.Promoted && has
}

// vacate decides what follows an allocation that was told to stop, by the cause.
func (m *Model) vacate(s *seat, row cluster.Slot) {
	cause := row.Cause
	row.Phase, row.Since, row.Deadline, row.Cause = cluster.Stopped, m.time, 0, cluster.NoCause
	if cause == cluster.ByPreemption {
		row.Ended = cluster.Preempted
	}
	m.dropIdle(s)
	switch {
	case s.kind != cluster.MainSeat && (s.over(cause) || !s.slot.wanted()):
		m.put(s, cluster.Slot{})
	case !s.slot.wanted():
		m.put(s, row)
	case s.kind == cluster.MainSeat && m.heir(s.slot) != nil:
		heir := m.heir(s.slot)
		m.put(s, row)
		m.move(heir, cluster.MainSeat)
	case m.final(s, cause):
		m.giveUp(s, row, cause == cluster.ByRunTime)
		return
	case cause.Anew():
		m.anew(s, row)
	case cause == cluster.ByUpdate:
		m.renew(s, row)
	case cause == cluster.ByRelease:
		row.Order, row.Node = 0, 0
		m.wait(s, row, cluster.AnyNode)
	default:
		wishes := map[cluster.Cause]cluster.Wish{cluster.ByRestart: cluster.PreferNode, cluster.ByMove: cluster.AvoidNode}
		m.wait(s, row, wishes[cause])
	}
	if cause.Evicts() {
		m.evicted(s)
	}
}

// dropIdle forgets a promoted canary that has nothing to take a main seat with.
func (m *Model) dropIdle(s *seat) {
	canary := &s.slot.seats[cluster.CanarySeat]
	if s.kind == cluster.MainSeat && s.slot.wanted() && s.job().update.Promoted && canary.taken() &&
		!canary.Phase.Holds() {
		m.put(canary, cluster.Slot{})
	}
}

// final tells whether a cause ends a seat for good.
func (m *Model) final(s *seat, cause cluster.Cause) bool {
	eviction, _ := m.policy(s, lifecycle.InstanceEvicted, 0)
	return cause == cluster.ByRunTime || cause == cluster.ByPreemption && s.job().newest().KillOnPreempt && eviction == nil
}

// giveUp ends a seat for good, as a failure.
func (m *Model) giveUp(s *seat, row cluster.Slot, late bool) {
	row.Phase, row.Health = cluster.Failed, cluster.Unhealthy
	if late {
		row.Ended = cluster.OutOfTime
		row.Failures++
		if m.failedByPolicy(s, row, lifecycle.InstanceFailed) {
			return
		}
	}
	m.put(s, row)
	m.failedByPolicy(s, row, lifecycle.TaskFailed)
}

// heir returns who takes over the main seat: a canary that was promoted, or one that returned.
func (m *Model) heir(s *slot) *seat {
	canary, away := &s.seats[cluster.CanarySeat], &s.seats[cluster.AwaySeat]
	switch {
	case s.task.job.update.Promoted && canary.Phase.Holds() && canary.Phase != cluster.Stopping:
		return canary
	case away.Phase == cluster.Running:
		return away
	}
	return nil
}

// renew lets a seat wait for an instance of the newest version.
func (m *Model) renew(s *seat, row cluster.Slot) {
	wish := cluster.AnyNode
	if s.job().newest().Update.SameNode {
		wish = cluster.PreferNode
	}
	row.Version, row.Failures, row.Health = 0, 0, cluster.Untried
	s.slot.attempts = retries.Attempts{}
	m.wait(s, row, wish)
}

// wait lets a seat wait for a node: a daemon's for its own, one with volumes for the one that has them.
func (m *Model) wait(s *seat, row cluster.Slot, wish cluster.Wish) {
	j, t := s.job(), s.slot.task
	if s.kind == cluster.AwaySeat ||
		s.kind == cluster.CanarySeat && (j.update.State.Final() || row.Version != j.version()) {
		m.put(s, cluster.Slot{})
		return
	}
	spec := t.spec(row.Version)
	row.Phase, row.Wish, row.Deadline, row.Since, row.Cause = cluster.Waiting, wish, 0, m.time, cluster.NoCause
	if s.kind == cluster.MainSeat && (row.Version == j.version() || row.Version != 0 && t.asGood(row.Version)) {
		row.Version = 0
	}
	if row.Health != cluster.Unhealthy {
		row.Health = cluster.Untried
	}
	switch {
	case j.newest().Type == terms.Daemon:
		row.Wish, row.Node = cluster.OnlyNode, cluster.NodeIndex(s.slot.index)
		if !m.able(t, m.Nodes[row.Node]) {
			row.Phase, row.Version = cluster.Stopped, j.version()
		}
	case spec != nil && len(spec.Volumes) > 0 && row.Order != 0:
		row.Wish = cluster.OnlyNode
	}
	m.put(s, row)
}
