package model

import (
	"starling/cluster/facts"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// former is a seat as it was before something was tried, with where the next free port was looked for on the node.
type former struct {
	s        *seat
	before   seat
	portNext uint16
}

// succession tries instances of the newest version in the places of earlier ones; undo takes all of it back.
type succession struct {
	m     *Model
	lacks uint32
	trail []former
}

// onTheWay tells whether an instance of the task is on its way to a node.
func (t *task) onTheWay() (found bool) {
	t.each(func(s *seat) {
		found = found || s.Phase == facts.Waiting && s.slot.index < t.desired ||
			s.Phase == facts.Stopping && s.kind == facts.MainSeat
	})
	return found
}

// succeeds tells whether there is room for who takes the place of what runs: on its own node, or else on the first that
// has room.
func (t *succession) succeeds(s *seat) bool {
	task, tied := s.slot.task, s.job().newest().Type == terms.Daemon
	switch {
	case task.spec(0) == nil, s.Phase != facts.Assigned && s.Phase != facts.Running,
		tied && !t.m.able(task, t.m.Nodes[s.Node]):
		return true
	case t.lacks >= t.m.limits.Trials:
		return false
	}
	elsewhere := !tied && !task.tied(task.spec(0)) && !task.onTheWay()
	before, q := *s, search{task, task.spec(0), false}
	s.Slot = facts.Slot{Order: s.Order, Node: s.Node, Version: s.Version, Phase: facts.Stopped}
	s.ports, s.devices = nil, nil
	there := func(r *room) bool { return r.node.number == before.Node }
	place := t.m.firstRoom(t.m.rooms(), q, there)
	if place == nil && elsewhere {
		place = t.m.firstRoom(t.m.rooms(), q, func(*room) bool { return true })
	}
	if place == nil && t.m.rules >= rules.Successors && reading.Within(q.spec, before.spec()) {
		bare := *t.m
		bare.nominations = nil
		place = bare.firstRoom(bare.rooms(), q, there)
	}
	if place == nil {
		*s = before
		t.lacks++
		return false
	}
	t.trail = append(t.trail, former{s, before, place.node.portNext})
	s.Slot = facts.Slot{Order: before.Order, Node: place.node.number, Version: s.job().version(),
		Phase: facts.Assigned}
	place.give(s)
	return true
}

// firstRoom returns the first room of some that can run an instance, if need be without the rules that are not soft any
// more; nil if none can.
func (m *Model) firstRoom(rooms []*room, q search, among func(*room) bool) *room {
	for _, timedOut := range []bool{false, true} {
		counts := func(c *constraint.Constraint) bool { return !timedOut || m.softEnd(q.t, q.special, c) > m.time }
		for _, r := range rooms {
			if among(r) && r.fits(q.spec) && m.suits(rooms, q, r, counts) {
				return r
			}
		}
	}
	return nil
}

// undo takes back what was tried.
func (t *succession) undo() {
	for i := len(t.trail) - 1; i >= 0; i-- {
		one := t.trail[i]
		t.m.Nodes[one.s.Node].portNext = one.portNext
		*one.s = one.before
	}
}
