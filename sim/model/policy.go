package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/reconcile"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/lifecycle"
)

// Policies, plainly: what happened to an instance stands in its seat, and what follows is found there again when it is
// due.

// policy returns the first policy that is about what happened to the instance in a seat, and whether the job has it.
func (m *Model) policy(s *seat, e lifecycle.Event, code int32) (found *lifecycle.Policy, ofJob bool) {
	j, spec := s.job(), s.slot.task.spec(0)
	if spec == nil || j.suspended || s.kind != facts.MainSeat || !s.slot.wanted() {
		return nil, false
	}
	for i, p := range slices.Concat(spec.Policies, j.newest().Policies) {
		if p.Hears(e, code) {
			return &p, i >= len(spec.Policies)
		}
	}
	return nil, false
}

// outOfRestarts tells whether an instance that has failed may not start again on its node.
func (s *seat) outOfRestarts(failures uint32, how facts.Ending) bool {
	return reading.Spent(s.job().newest(), &s.spec().Restart, failures, how)
}

// failedByPolicy does what comes of a failure by a policy, if one is about it.
func (m *Model) failedByPolicy(s *seat, row facts.Slot, e lifecycle.Event) bool {
	p, _ := m.policy(s, e, reading.OwnCode(&row))
	if p == nil {
		return false
	}
	if p.Action == lifecycle.RestartInstance && !s.outOfRestarts(row.Failures, row.Ended) && m.Nodes[row.Node].Peer == "" {
		m.wait(s, row, facts.AnyNode)
		return true
	}
	if p.Action == lifecycle.RestartInstance && !s.outOfRestarts(row.Failures, row.Ended) {
		row.Phase, row.Deadline = facts.BackingOff, m.time+s.restartDelay(row.Failures)
		if p.DelayMillis > 0 {
			row.Deadline = m.time + terms.Time(p.DelayMillis)
		}
		m.put(s, row)
		return true
	}
	row.Cause = facts.ByPolicy
	if e == lifecycle.TaskFailed {
		row.Cause = facts.ByTaskPolicy
	}
	wait := p.DelayMillis
	if p.Action == lifecycle.RestartInstance {
		wait = 0
	}
	m.ponder(s, row, wait)
	return true
}

// ponder leaves a seat as it is until what a policy says is done.
func (m *Model) ponder(s *seat, row facts.Slot, wait uint32) {
	row.Phase, row.Deadline = facts.Rescheduling, m.time+terms.Time(wait)
	m.put(s, row)
	if wait == 0 {
		m.heeds = append(m.heeds, s)
	}
}

// restartDelay is how long an instance waits that failed so often in a row.
func (s *seat) restartDelay(failures uint32) terms.Time {
	rule := s.spec().Restart
	wait := terms.Time(rule.DelayMillis)
	for i := uint32(1); i < failures && wait > 0 && wait < terms.Time(rule.DelayMaxMillis); i++ {
		wait *= 2
	}
	return min(wait, terms.Time(rule.DelayMaxMillis))
}

// evicted looks whether a policy is about a seat that waits because its instance was evicted.
func (m *Model) evicted(s *seat) {
	p, _ := m.policy(s, lifecycle.InstanceEvicted, 0)
	if p == nil || s.slot.gone() || s.Phase != facts.Waiting {
		return
	}
	row := s.Slot
	if p.Action == lifecycle.RestartInstance {
		if row.Failures++; !s.outOfRestarts(row.Failures, facts.OnRequest) {
			m.put(s, row)
			return
		}
	}
	switch row.Ended {
	case facts.NotEnded: // it was out of reach
		row.Ended = facts.NodeLost
	case facts.Preempted, facts.NodeLost:
	default:
		row.Ended = facts.OnRequest
	}
	if p.Action == lifecycle.RestartInstance {
		row.Cause = facts.ByPolicy
		m.ponder(s, row, 0)
		return
	}
	row.Deadline = m.time + terms.Time(p.DelayMillis)
	m.put(s, row)
	if p.DelayMillis == 0 {
		m.heeds = append(m.heeds, s)
	}
}

// byPolicy tells whether a policy is to decide about a seat.
func (s *seat) byPolicy() bool {
	return s.Phase == facts.Waiting && s.Deadline > 0 || s.Phase == facts.Rescheduling && s.Cause > 0
}

// event returns what happened to a seat of which a policy is to decide, 0 for nothing.
func (s *seat) event() lifecycle.Event {
	evicted := s.Ended == facts.Preempted || s.Ended == facts.NodeLost || s.Ended == facts.OnRequest
	switch {
	case s.Phase == facts.Succeeded && s.slot.task.complete():
		return lifecycle.TaskCompleted
	case !s.byPolicy():
		return 0
	case s.Cause == facts.ByTaskPolicy:
		return lifecycle.TaskFailed
	case s.Phase == facts.Waiting || evicted:
		return lifecycle.InstanceEvicted
	}
	return lifecycle.InstanceFailed
}

// onCompletion returns the policy that is about it that all of a task has succeeded, nil if that is not so or none is.
func (m *Model) onCompletion(t *task) *lifecycle.Policy {
	if t.desired == 0 || !t.complete() {
		return nil
	}
	p, _ := m.policy(t.slots[0].main(), lifecycle.TaskCompleted, 0)
	return p
}

// followsCompletion tells whether what a policy says of it is still to be done.
func (m *Model) followsCompletion(t *task) bool {
	return t.completion.Due > 0 || m.onCompletion(t) != nil && !t.completion.Followed
}

// completed notes when what a policy says of it is to be done, or that nothing is; it returns true for now. What was to
// be done of a job that is suspended is noted again when that goes on.
func (m *Model) completed(t *task) bool {
	p := m.onCompletion(t)
	switch {
	case t.job.suspended:
		t.completion.Due = 0
	case p == nil:
		t.completion = facts.Completion{}
	case t.completion.Followed || t.completion.Due > 0:
	case p.DelayMillis > 0:
		t.completion.Due = m.time + terms.Time(p.DelayMillis)
	default:
		return true
	}
	return false
}

// completionDue does what a policy says of it now, in the name of the last instance.
func (m *Model) completionDue(t *task) {
	t.job.touched, t.completion = true, facts.Completion{}
	if m.onCompletion(t) != nil {
		m.decide(t.slots[t.desired-1].main())
	}
}

// heedAll does what is due because of the entry.
func (m *Model) heedAll() {
	for _, s := range m.heeds {
		if s.job().finished == 0 && !s.slot.gone() && slices.Contains(m.Jobs, s.job()) {
			m.decide(s)
		}
	}
	m.heeds = nil
}

// policyDue does what a policy says of a seat whose time has come, or lets the seat go on if none does.
func (m *Model) policyDue(s *seat) {
	if m.decide(s) {
		return
	}
	row := s.Slot
	row.Deadline = 0
	if row.Phase == facts.Waiting {
		m.put(s, row)
		return
	}
	row.Cause = facts.NoCause
	m.settle(s, row, func(c *reconcile.Candidate) { c.Due = true })
}

// decide does what a policy says of a seat. It returns false if none does.
func (m *Model) decide(s *seat) bool {
	j, t, e := s.job(), s.slot.task, s.event()
	if e == 0 {
		return false
	}
	p, ofJob := m.policy(s, e, reading.OwnCode(&s.Slot))
	if p == nil {
		return false
	}
	j.touched = true
	if e == lifecycle.TaskCompleted {
		t.completion = facts.Completion{Followed: true}
	}
	spent := t.spent(p.Action)
	j.state.Last = facts.PolicyAction{
		Entry: m.index, At: m.time, Action: p.Action, Event: e, OfJob: ofJob, Spent: spent,
		Task: uint16(t.number), Index: s.slot.index, Order: s.Order, Ended: s.Ended, ExitCode: s.ExitCode,
	}
	switch {
	case spent || p.Action == lifecycle.Terminate:
		m.end(s, facts.Terminated)
	case p.Action == lifecycle.Complete:
		m.end(s, facts.Completed)
	case p.Action == lifecycle.Abort:
		m.suspend(j, true)
	case p.Action == lifecycle.RestartTask:
		t.restarts++
		var all []*task
		for _, other := range j.tasks {
			if other == t || other.behind(t) {
				all = append(all, other)
			}
		}
		m.renewAll(j, all, facts.ByTaskRestart)
	default:
		j.state.Restarts++
		m.renewAll(j, j.tasks, facts.ByJobRestart)
	}
	return true
}

// spent tells whether an action is a restart, of which none is left.
func (t *task) spent(a lifecycle.Action) bool {
	most, restarts := t.job.newest().MaxRestarts, t.job.state.Restarts
	switch a {
	case lifecycle.RestartInstance:
		return true // those that are left are used before
	case lifecycle.RestartTask:
		most, restarts = t.spec(0).MaxRestarts, t.restarts
	case lifecycle.RestartJob:
	default:
		return false
	}
	return most != terms.RestartsUnlimited && restarts >= most
}

// behind tells whether a task comes after another, directly or not.
func (t *task) behind(other *task) bool {
	return slices.ContainsFunc(t.after(), func(before *task) bool { return before == other || before.behind(other) })
}

// end stops a job, which has failed or succeeded by that.
func (m *Model) end(s *seat, v facts.PolicyOutcome) {
	if row := s.Slot; row.Phase == facts.Rescheduling {
		row.Phase, row.Cause, row.Deadline, row.Health = facts.Failed, facts.NoCause, 0, facts.Unhealthy
		m.put(s, row)
	}
	s.job().state.Outcome = v
	m.kill(s.job())
}

// enough tells whether as many instances have succeeded as the job wants.
func (j *Job) enough() bool {
	count := uint32(0)
	j.each(func(s *seat) {
		if s.kind == facts.MainSeat && s.Phase == facts.Succeeded {
			count++
		}
	})
	return j.newest().MinSuccess > 0 && count >= j.newest().MinSuccess
}

// renewAll ends what lives of some tasks, and lets each slot begin anew.
func (m *Model) renewAll(j *Job, tasks []*task, cause facts.Cause) {
	for _, t := range tasks {
		t.restarting = true
		sealed := t.sealed.Entry > 0
		t.sealed = facts.Seal{}
		if j.newest().Type == terms.Batch && (t.desired == 0 || sealed) && t.spec(0) != nil {
			m.want(t, t.spec(0).Instances)
		}
		used, all := t.used(), []*seat(nil)
		t.each(func(s *seat) { all = append(all, s) })
		for _, s := range besideFirst(all) {
			goes := s.Phase == facts.Stopping &&
				(s.Cause == facts.ByUpdate || s.Cause == facts.ByScale || s.Cause == facts.ByRival)
			switch {
			case s.slot.gone() || !s.taken() || goes || s.slot.index >= used:
			case s.Phase.Holds():
				m.stop(s, cause)
			case s.kind == facts.MainSeat && s.slot.index < t.desired:
				m.anew(s, s.Slot)
			}
		}
	}
	j.endSoftWait()
	m.loseOutputs(j)
}

// anew lets a seat wait as if nothing had been before.
func (m *Model) anew(s *seat, row facts.Slot) {
	row.Failures, row.Health = 0, facts.Starting
	s.slot.attempts = retries.Attempts{}
	m.wait(s, row, facts.AnyNode)
}

// beginAnew lets the tasks that are restarted begin when nothing of them lives any more.
func (m *Model) beginAnew(j *Job) {
	alive := false
	j.each(func(s *seat) { alive = alive || s.slot.task.restarting && s.Phase.Holds() })
	for _, t := range j.tasks {
		if t.restarting && !alive {
			t.restarting = false
			j.endSoftWait()
		}
	}
}
