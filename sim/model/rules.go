package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/constraint"
)

// search is what somebody looks for a node for: a seat that takes any, or one that wants a particular node or version.
type search struct {
	t       *task
	spec    *terms.Task
	special bool
}

func (s *seat) search() search { return search{s.slot.task, s.spec(), s.special()} }

// suits tells whether the rules of a task hold on a node, of the soft ones those that count.
func (m *Model) suits(rooms []*room, q search, r *room, counts func(*constraint.Constraint) bool) bool {
	if q.spec.PerNodeMax > 0 && r.own[q.t] >= int(q.spec.PerNodeMax) ||
		r.exclusive() && !slices.ContainsFunc(q.spec.Constraints, reading.AsksExclusive) || !m.within(q.t.job, r.node) {
		return false
	}
	for _, c := range q.spec.Constraints {
		if (!c.Soft || counts(&c)) && !holdsFor(q.spec, rooms, r, &c) {
			return false
		}
	}
	return true
}

// holdsFor tells whether a rule of a task holds on a node. Where it asks for company of its own kind, the first may
// start.
func holdsFor(t *terms.Task, rooms []*room, r *room, c *constraint.Constraint) bool {
	part := func(part constraint.Constraint) bool { return holdsFor(t, rooms, r, &part) }
	switch {
	case len(c.All) > 0:
		return !slices.ContainsFunc(c.All, func(one constraint.Constraint) bool { return !part(one) })
	case len(c.Any) > 0:
		return slices.ContainsFunc(c.Any, part)
	case c.Label == "":
		return reading.Satisfied(r.node.offer, c)
	}
	label := terms.EnvVar{Name: c.Label, Value: c.Values[0]}
	alone := !slices.ContainsFunc(rooms, func(other *room) bool { return other.labels[label] > 0 })
	if alone && slices.Contains(t.Labels, label) && !reading.Compared(c.Operator, 0, int(c.Count)) &&
		reading.Compared(c.Operator, 1, int(c.Count)) {
		return true
	}
	return holdsAt(rooms, r, c)
}

// softWait tells since when seats of a task wait that have soft rules; begun is false if none does.
type softWait struct {
	begun bool
	since terms.Time
}

// softWaitOf returns the softWait of the seats that take any node, or of the others.
func (t *task) softWaitOf(special bool) *softWait {
	if special {
		return &t.softWait[1]
	}
	return &t.softWait[0]
}

// softEnd is when a soft rule of a task that waits ends.
func (m *Model) softEnd(t *task, special bool, c *constraint.Constraint) terms.Time {
	if p := t.softWaitOf(special); p.begun {
		return p.since + terms.Time(c.SoftTimeoutMillis)
	}
	return m.time + terms.Time(c.SoftTimeoutMillis)
}

// queued tells whether the one or the other queue entry of a task waits to be placed.
func (t *task) queued(special bool) (found bool) {
	t.each(func(s *seat) { found = found || s.waits() && s.special() == special })
	return found && t.asks() > 0
}

// endSoftWait forgets the softWait of what does not wait any more, or may not run now.
func (j *Job) endSoftWait() {
	for _, t := range j.tasks {
		for _, special := range []bool{false, true} {
			if p := t.softWaitOf(special); p.begun && !t.queued(special) {
				*p = softWait{}
			}
		}
	}
}

func holdsAt(rooms []*room, r *room, c *constraint.Constraint) bool {
	if len(c.All) > 0 {
		return !slices.ContainsFunc(c.All, func(part constraint.Constraint) bool { return !holdsAt(rooms, r, &part) })
	}
	if len(c.Any) > 0 {
		return slices.ContainsFunc(c.Any, func(part constraint.Constraint) bool { return holdsAt(rooms, r, &part) })
	}
	if c.Label == "" {
		return reading.Satisfied(r.node.offer, c)
	}
	count := 0
	for _, other := range rooms {
		if other == r || c.Within != "" && other.value(c.Within) == r.value(c.Within) {
			count += other.labels[terms.EnvVar{Name: c.Label, Value: c.Values[0]}]
		}
	}
	return reading.Compared(c.Operator, count, int(c.Count))
}

// mayStay tells whether a node satisfies the newest rules for what it runs, if some instances were not there.
func (m *Model) mayStay(s *seat, gone map[*seat]bool) bool {
	rooms, t, spec := m.roomsWithout(func(one *seat) bool { return gone[one] }), s.slot.task, s.slot.task.spec(0)
	r := rooms[s.Node]
	if r.node.offer == nil || r.exclusive() && !slices.ContainsFunc(spec.Constraints, reading.AsksExclusive) {
		return false
	}
	return (spec.PerNodeMax == 0 || r.own[t] < int(spec.PerNodeMax)) &&
		!slices.ContainsFunc(spec.Constraints, func(c constraint.Constraint) bool {
			return !c.Soft && !holdsFor(spec, rooms, r, &c)
		})
}

func (n *Node) attribute(name string) (value string, exists bool) {
	if n.offer == nil {
		return "", false
	}
	return n.offer.Attribute(name)
}

// home returns the domain of the first instance of a job that has a node, of each task the main seats first.
func (j *Job) home(m *Model) (value string, found bool) {
	if j.newest().Within == "" {
		return "", false
	}
	for _, t := range j.tasks {
		for _, beside := range []bool{false, true} {
			t.each(func(s *seat) {
				if !found && (s.kind != facts.MainSeat) == beside && s.Phase.Holds() && s.Phase != facts.Stopping {
					value, found = m.Nodes[s.Node].attribute(j.newest().Within)
				}
			})
		}
	}
	return value, found
}

// within tells whether a node is in a domain where instances of a job may go: the one where others of it are.
func (m *Model) within(j *Job, n *Node) bool {
	value, exists := n.attribute(j.newest().Within)
	home, found := j.home(m)
	return j.newest().Within == "" || exists && (!found || value == home)
}
