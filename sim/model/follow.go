package model

import (
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/replica/report"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/constraint"
)

// follow does what the fold decided with an entry for those that wait, in its order: who was placed, and who gave way.
// Whether it may place somebody there is checked; that it chose well is for the twins beside packages place, preempt,
// admission, share and entitle, and for the promises of the simulator. What it keeps for them until the next entry is
// taken over.
func (m *Model) follow(outcome *report.Outcome) {
	m.left, m.nominations = nil, nil // what is kept is for whom the fold says
	for i := range outcome.Effects {
		switch e := &outcome.Effects[i]; e.Kind {
		case report.Placed:
			if slot := m.slotOf(&e.Slot); slot != nil && e.Order == m.index && e.Reason == "" {
				m.place(slot)
			}
		case report.GaveWay:
			if slot := m.slotOf(&e.Slot); slot != nil && slot.ordered(e.Order) != nil {
				m.stop(slot.ordered(e.Order), facts.ByPreemption)
				m.left = nil
			}
		case report.More:
			m.followRest()
		}
	}
	m.takeOver()
}

// followRest follows what the fold did without telling: who gave way, some of whom held nothing any more, and then who
// was placed.
func (m *Model) followRest() {
	m.eachSeat(func(s *seat, now *facts.Slot) {
		told := s.Order == now.Order && now.Cause == facts.ByPreemption && s.Cause != now.Cause
		gone := s.Order == now.Order && s.Phase.Holds() && now.Phase == facts.Waiting && now.Ended == facts.Preempted
		again := s.Phase == facts.BackingOff && s.Order != m.index && now.Order == m.index // gone, and placed at once
		if s.taken() && (told || gone || again) {
			m.stop(s, facts.ByPreemption)
			m.left = nil
		}
	})
	m.eachSeat(func(s *seat, now *facts.Slot) {
		if s.waits() && now.Order == m.index {
			m.place(s.slot)
		}
	})
}

// eachSeat visits all seats, and what the fold has there.
func (m *Model) eachSeat(visit func(s *seat, now *facts.Slot)) {
	for _, j := range m.Jobs {
		for _, t := range j.tasks {
			for _, slot := range t.slots {
				for kind := range slot.seats {
					now, _ := m.fold.SlotAt(slot.seats[kind].ref())
					visit(&slot.seats[kind], &now)
				}
			}
		}
	}
}

// takeOver takes over what the fold keeps for those that wait.
func (m *Model) takeOver() {
	for _, id := range m.fold.NominatedJobs() {
		kept, _ := m.fold.NominationOf(id)
		m.nominations = append(m.nominations, kept)
	}
	for _, n := range m.Nodes {
		n.portNext = m.fold.Node(n.number).PortNext
	}
	for _, j := range m.Jobs {
		for _, t := range j.tasks {
			for _, special := range []bool{false, true} {
				key := facts.KeyOf(j.ID, t.number)
				if special {
					key = key.Special()
				}
				since, begun := m.fold.SoftSince(key)
				*t.softWaitOf(special) = softWait{begun, since}
			}
		}
	}
}

// slotOf returns the slot of a name, nil if there is none.
func (m *Model) slotOf(name *terms.SlotName) *slot {
	j := m.jobOf(name.Job)
	if j == nil {
		return nil
	}
	at := slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == name.Task })
	if at < 0 || int(name.Index) >= len(j.tasks[at].slots) {
		return nil
	}
	return j.tasks[at].slots[name.Index]
}

// place gives a seat that waits the node that the fold gave to it. While an update runs, it is to be healthy in time.
func (m *Model) place(slot *slot) {
	var s *seat
	var now facts.Slot
	for kind := range slot.seats {
		one := &slot.seats[kind]
		if row, _ := m.fold.SlotAt(one.ref()); row.Order == m.index && (one.waits() || s == nil) {
			s, now = one, row
		}
	}
	if s == nil || !s.waits() {
		m.wrong("%s[%d] was placed and does not wait", slot.task.name, slot.index)
		return
	}
	asks, q := slot.task.asks(), s.search()
	switch j := s.job(); {
	case asks == 0:
		m.wrong("%v was placed, and nothing of its task asks for room", s.ref())
	case s.Preference == facts.OnlyNode && now.Node != s.Node:
		m.wrong("%v was placed on node %d, and runs only on %d", s.ref(), now.Node, s.Node)
	default:
		version := s.Version
		if version == 0 {
			version = j.version()
		}
		q.spec = slot.task.spec(version)
		m.checkPlace(s.ref(), q, m.Nodes[now.Node])
		s.Slot = facts.Slot{
			Order: m.index, Since: m.time, Node: now.Node, Version: version, Phase: facts.Assigned, Failures: s.Failures,
			Health: s.Health, Deadline: reading.HealthyBy(j.newest(), &j.update, version, m.time),
		}
		m.receive(s)
	}
}

// checkPlace checks that a node has room for an instance and that its hard rules hold there.
func (m *Model) checkPlace(r facts.SlotRef, q search, n *Node) {
	if q.spec == nil || !n.open() {
		m.wrong("%v was placed on %s, which takes no work", r, n.Name)
		return
	}
	if m.left == nil {
		m.left = m.rooms()
	}
	rooms := m.left
	if !rooms[n.number].fits(q.spec) {
		m.wrong("%v was placed on %s, which has no room for it: %v of %v are free", r, n.Name, rooms[n.number].free,
			n.offer.Capacity)
	}
	if !m.suits(rooms, q, rooms[n.number], func(*constraint.Constraint) bool { return false }) {
		m.wrong("%v was placed on %s against its rules", r, n.Name)
	}
}

// receive takes over which ports and devices a seat was given, if they are what it asks for and nobody else has them.
func (m *Model) receive(s *seat) {
	spec, node := s.spec(), m.fold.Node(s.Node)
	others := m.left[s.Node]
	s.ports, s.devices = nil, nil
	for _, p := range node.Ports {
		if p.Slot == s.ref() {
			s.ports = append(s.ports, p)
		}
	}
	for _, d := range node.Devices {
		if d.Slot == s.ref() {
			s.devices = append(s.devices, d)
		}
	}
	for _, p := range spec.Ports {
		at := slices.IndexFunc(s.ports, func(use facts.PortUse) bool { return use.Name == p.Name })
		if at < 0 || p.Number != 0 && s.ports[at].Number != p.Number || others.portTaken(s.ports[at].Number) {
			m.wrong("%v has the ports %v on %s, it asks for %v", s.ref(), s.ports, node.Name, spec.Ports)
			break
		}
	}
	for _, q := range spec.Devices {
		amount := uint32(0)
		for _, d := range s.devices {
			if d.Kind == q.Kind {
				amount += uint32(d.Amount)
			}
			if left := others.deviceLeft(d.Kind, d.Number); left < int(d.Amount) {
				m.wrong("%v has device %s %d on %s, of which others leave %d", s.ref(), d.Kind, d.Number, node.Name, left)
			}
		}
		if amount != uint32(q.Amount) {
			m.wrong("%v has %d of %s, it asks for %d", s.ref(), amount, q.Kind, q.Amount)
		}
	}
	others.take(s)
}

// wrong notes what the fold may not have done.
func (m *Model) wrong(format string, a ...any) {
	m.wrongs = append(m.wrongs, fmt.Sprintf(format, a...))
}
