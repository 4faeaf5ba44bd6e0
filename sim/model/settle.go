package model

import (
	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/reconcile"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// listedMax is up to how many slots of a task reconcile is asked about all of them.
const listedMax = 64

// settle keeps a seat's row after an event, asks reconcile what becomes of its slot, and does it. Event says what the
// row cannot.
func (m *Model) settle(s *seat, row facts.Slot, event func(*reconcile.Candidate)) {
	t, main, before := s.slot.task, s.slot.main(), s.slot.main().Phase
	m.put(s, row)
	if s.slot.gone() {
		return
	}
	var all []reconcile.Slot
	for _, slot := range t.slots {
		if slot != s.slot && len(t.slots) > listedMax {
			continue
		}
		one := reconcile.Slot{Index: slot.index,
			Closed: t.job.newest().Type == terms.Daemon && !m.able(t, m.Nodes[slot.index])}
		for kind := range slot.seats {
			c, ok := m.candidate(&slot.seats[kind])
			if &slot.seats[kind] == s {
				event(&c)
			}
			if ok || c.Again || c.Final {
				one.Candidates = append(one.Candidates, c)
			}
		}
		all = append(all, one)
	}
	question, result := m.question(t), reconcile.Result{}
	reconcile.Reconcile(&question, all, reconcile.Tally{}, &result)
	m.asked = &question
	m.obeyResult(s.slot, &question, &result)
	if before != facts.Failed && main.Phase == facts.Failed {
		m.failedByPolicy(main, main.Slot, lifecycle.TaskFailed)
	}
}

func (m *Model) question(t *task) reconcile.Task {
	j := t.job
	q := reconcile.Task{
		Now: m.time, Version: j.version(), Count: t.desired, Batch: j.newest().Type == terms.Batch,
		Daemon: j.newest().Type == terms.Daemon, Soon: reading.Soon(m.rules),
		Spec: t.spec(0), Policy: &terms.UpdatePolicy{},
	}
	if j.stop || q.Spec == nil {
		q.Count = 0
	}
	holds := reading.Holds(&j.update, m.rules)
	if u := &j.update; j.updating() || holds {
		q.Update = reconcile.Update{ID: u.Began, Promoted: u.Promoted}
	}
	if holds {
		q.Update.State = reconcile.UpdateFailed
	}
	return q
}

// candidate returns what a seat has, as reconcile sees it; ok is false if it has nothing.
func (m *Model) candidate(s *seat) (c reconcile.Candidate, ok bool) {
	j := s.job()
	c, ok = reading.Candidate(&s.Slot)
	if c.Own, c.Attempts = s.spec(), m.attempts(s).Latest; s.kind == facts.CanarySeat {
		if c.CanaryOf = j.update.Began; s.Version != j.update.To {
			c.CanaryOf = ^terms.Index(0)
		}
	}
	if c.Client == reconcile.CompleteClient {
		c.Version = j.version()
	}
	if ill := s.Health == facts.Unhealthy || m.rules < rules.WellAgain; ok && ill && reading.Holds(&j.update, m.rules) &&
		s.Version == j.update.To {
		c.Update = j.update.Began
	}
	return c, ok && s.Order != 0
}

// attempts are those of what is in a seat: while a slot has a canary they are that one's.
func (m *Model) attempts(s *seat) (all retries.Attempts) {
	if !m.hasCanary(s, rules.CanaryAttempts) {
		all = s.slot.attempts
	}
	return all
}

func (m *Model) hasCanary(s *seat, since rules.Number) bool {
	return m.rules >= since && s.kind != facts.CanarySeat && s.slot.seats[facts.CanarySeat].taken()
}

// emptySeat takes what is in a seat away.
func (m *Model) emptySeat(s *seat) {
	if m.put(s, facts.Slot{}); s.kind == facts.CanarySeat && m.rules >= rules.CanaryAttempts {
		s.slot.attempts = retries.Attempts{}
	}
}

// obeyResult does what was decided about one slot, until there is a later decision.
func (m *Model) obeyResult(s *slot, question *reconcile.Task, result *reconcile.Result) {
	decision := reading.DecisionOf(result, s.index)
	for _, r := range result.Disconnects {
		if one := s.ordered(r.Order); r.Index == s.index && one != nil {
			row := one.Slot
			row.Phase, row.Since, row.Deadline = facts.Unknown, m.time, decision.Until
			m.put(one, row)
		}
	}
	for _, r := range result.Reconnects {
		if one := s.ordered(r.Order); r.Index == s.index && one != nil {
			m.back(one)
		}
	}
	for _, stop := range result.Stops {
		if one := s.ordered(stop.Order); stop.Index == s.index && one != nil {
			m.dismiss(one, &stop, decision.Main.Holder)
		}
		if m.asked != question {
			return
		}
	}
	m.fillAll(s, &decision, question)
}

// fillAll does with the seats what was decided. A promoted canary that waits for its place has the main seat's verdict.
func (m *Model) fillAll(s *slot, decision *reconcile.Decision, question *reconcile.Task) {
	canary := &s.seats[facts.CanarySeat]
	m.inherit(s, decision)
	if s.task.job.update.Promoted && canary.taken() && !canary.Phase.Holds() &&
		(canary.Order == 0 || canary.Order != decision.Main.Holder) {
		m.emptySeat(canary)
	}
	if holder := decision.Main.Holder; holder != 0 && holder == canary.Order && holder != s.main().Order {
		m.fill(canary, &decision.Main, question)
	} else if !s.main().byPolicy() || decision.Main.Reason == reconcile.NotWanted {
		m.fill(s.main(), &decision.Main, question)
	}
	if canary.taken() {
		m.fill(canary, &decision.Canary, question)
	}
	for kind := range s.seats {
		if one := &s.seats[kind]; reading.Forgotten(&one.Slot) && m.asked == question {
			one.Deadline = decision.Until
		}
	}
}

// mayLive tells whether nothing may take the place of what is in a seat yet.
func (s *seat) mayLive() bool {
	return s.Phase == facts.Unknown && s.spec().Disconnect.StopAfterMillis > 0
}

// inherit gives the main seat to whom it was decided to belong, as soon as nothing else holds it, or what does is lost.
func (m *Model) inherit(s *slot, decision *reconcile.Decision) {
	main := s.main()
	lost := main.Phase.Holds() && main.Phase != facts.Unknown && m.Nodes[main.Node].Peer == ""
	heir := s.ordered(decision.Main.Holder)
	if heir == nil || heir == main || decision.Main.Action == reconcile.Place || main.Phase.Holds() && !lost {
		return
	}
	if lost {
		m.put(main, facts.Slot{Phase: facts.Stopped})
		heir.Deadline = decision.Until
	}
	if heir.kind == facts.CanarySeat && m.rules >= rules.FailedElsewhere {
		s.attempts = retries.Attempts{}
	}
	if m.move(heir, facts.MainSeat); main.Phase == facts.Succeeded {
		m.hearSuccess(main)
	}
}

// back notes that an allocation that was out of reach runs. It has its old seat again unless another has that.
func (m *Model) back(s *seat) {
	row := s.Slot
	row.Phase, row.Deadline, row.Health = facts.Running, 0, facts.Starting
	m.put(s, row)
}

// dismiss ends an allocation that does not keep its seat, or the main one to its holder.
func (m *Model) dismiss(s *seat, stop *reconcile.Stopping, holder terms.Index) {
	over := stop.Client == reconcile.LostClient || stop.Client == reconcile.FailedClient || s.Phase == facts.Failed ||
		s.Phase.Holds() && s.Phase != facts.Unknown && m.Nodes[s.Node].Peer == ""
	switch {
	case reading.Stays(s.kind, stop, m.rules):
	case over && s.kind != facts.MainSeat:
		m.emptySeat(s)
	case !over && s.Phase.Holds() && stop.Reason == reconcile.Moved:
		m.stop(s, facts.ByDrain)
	case !over && s.Phase.Holds() && s.kind == facts.MainSeat && holder != 0 &&
		s.slot.seats[facts.CanarySeat].Order == holder:
		m.stop(s, facts.ByUpdate)
	case !over && s.Phase.Holds():
		m.stop(s, facts.ByRival)
	}
}

// fill does with a seat what was decided about it.
func (m *Model) fill(s *seat, v *reconcile.Verdict, question *reconcile.Task) {
	if s.slot.gone() || m.asked != question {
		return
	}
	row := s.Slot
	switch {
	case v.Action == reconcile.Place && v.Reason == reconcile.AfterFailure:
		m.again(s, question)
	case row.Phase == facts.Unknown && row.Cause != facts.NoCause:
	case row.Phase != facts.Stopping && reading.Emptied(v, &row):
		m.await(s, row)
	case v.Reason == reconcile.WaitsToRetry && row.Phase != facts.Unknown:
		row.Phase, row.Deadline = facts.Rescheduling, v.Until
		m.put(s, row)
	case v.Reason.GivenUp():
		row.Phase, row.Health, row.Deadline, row.Cause = facts.Failed, facts.Unhealthy, 0, facts.NoCause
		m.put(s, row)
	case v.Reason == reconcile.NotWanted && !row.Phase.Final() && row.Phase != facts.Stopping:
		row.Cause = facts.ByScale
		m.vacate(s, row)
	}
}

// again lets a slot look for another node, and remembers the attempt. What is out of reach goes aside; of two that are,
// the older is given up.
func (m *Model) again(s *seat, question *reconcile.Task) {
	row := s.Slot
	if rule := &question.Spec.Reschedule; !m.hasCanary(s, rules.CanaryAttempts) {
		s.slot.attempts = reading.Again(s.slot.attempts, rule, m.time, row.Since).Keep(int(m.limits.Attempts))
	}
	if row.Phase == facts.Unknown {
		version := row.Version
		s.Deadline = row.Since + terms.Time(s.spec().Disconnect.LostAfterMillis)
		m.move(s, facts.UnknownSeat)
		row = s.Slot
		row.Version = version
	}
	row.Failures = 0
	m.wait(s, row, facts.AvoidNode)
}
