package sim

import (
	"slices"
	"strconv"

	"starling/cluster"
	"starling/cluster/constraint"
)

// suits tells whether the rules of a task hold on a node; with impatience those that were soft for long enough do not
// count.
func (m *model) suits(t *modelTask, rooms []*modelRoom, r *modelRoom, impatient bool) bool {
	spec := t.newest()
	if spec.PerNodeMax > 0 && r.own[t] >= int(spec.PerNodeMax) || r.exclusive() && !slices.ContainsFunc(spec.Constraints, asksExclusive) {
		return false
	}
	for _, c := range spec.Constraints {
		if impatient && c.Soft && m.softEnd(t, &c) <= m.time {
			continue
		}
		if !holdsAt(rooms, r, &c) {
			return false
		}
	}
	return true
}

// softEnd is when a soft rule of a task that waits ends.
func (m *model) softEnd(t *modelTask, c *cluster.Constraint) cluster.Time {
	if t.patient {
		return t.patientSince + cluster.Time(c.PatienceMillis)
	}
	return m.time + cluster.Time(c.PatienceMillis)
}

// beginPatience notes of every task whether it goes on waiting, after all was placed that could be.
func (m *model) beginPatience() {
	for _, j := range m.jobs {
		for _, t := range j.tasks {
			spec := t.newest()
			if !t.waiting() {
				t.patient = false
				continue
			}
			if !t.patient && slices.ContainsFunc(spec.Constraints, func(c cluster.Constraint) bool { return c.Soft }) {
				t.patient, t.patientSince = true, m.time
			}
		}
	}
}

// lapse returns when the next soft rule of a task ends, 0 if none will.
func (m *model) lapse(t *modelTask) (first cluster.Time) {
	if spec := t.newest(); spec != nil && t.waiting() {
		for _, c := range spec.Constraints {
			if end := m.softEnd(t, &c); c.Soft && end > m.time && (first == 0 || end < first) {
				first = end
			}
		}
	}
	return first
}

func (t *modelTask) waiting() bool {
	return slices.ContainsFunc(t.slots, func(s modelSlot) bool { return t.waits(&s) })
}

func asksExclusive(c cluster.Constraint) bool {
	return c.Attribute == "exclusive" || slices.ContainsFunc(append(slices.Clone(c.All), c.Any...), asksExclusive)
}

// value returns what the node offers as an attribute, "" if it does not.
func (r *modelRoom) value(attribute string) string {
	if r.node.offer != nil {
		for _, a := range r.node.offer.Attributes {
			if a.Name == attribute {
				return a.Value
			}
		}
	}
	return ""
}

func (r *modelRoom) exclusive() bool {
	return slices.ContainsFunc(r.node.offer.Attributes, func(a cluster.EnvVar) bool { return a.Name == "exclusive" })
}

func holdsAt(rooms []*modelRoom, r *modelRoom, c *cluster.Constraint) bool {
	if len(c.All) > 0 {
		return !slices.ContainsFunc(c.All, func(part cluster.Constraint) bool { return !holdsAt(rooms, r, &part) })
	}
	if len(c.Any) > 0 {
		return slices.ContainsFunc(c.Any, func(part cluster.Constraint) bool { return holdsAt(rooms, r, &part) })
	}
	if c.Label == "" {
		return satisfied(r.node.offer, c)
	}
	count := 0
	for _, other := range rooms {
		if other == r || c.Within != "" && other.value(c.Within) == r.value(c.Within) {
			count += other.labels[cluster.EnvVar{Name: c.Label, Value: c.Values[0]}]
		}
	}
	return compared(c.Operator, count, int(c.Count))
}

func compared(o constraint.Operator, x, y int) bool {
	return map[constraint.Operator]bool{
		constraint.Equal: x == y, constraint.NotEqual: x != y,
		constraint.Less: x < y, constraint.LessOrEqual: x <= y, constraint.Greater: x > y, constraint.GreaterOrEqual: x >= y,
	}[o]
}

func satisfied(offer *cluster.Offer, c *cluster.Constraint) bool {
	have, exists := "", false
	for _, a := range offer.Attributes {
		if a.Name == c.Attribute {
			have, exists = a.Value, true
		}
	}
	switch c.Operator {
	case constraint.Exists, constraint.NotExists:
		return exists == (c.Operator == constraint.Exists)
	case constraint.Equal, constraint.In:
		return exists && slices.Contains(c.Values, have)
	case constraint.NotEqual, constraint.NotIn:
		return !exists || !slices.Contains(c.Values, have)
	}
	x, bad := strconv.Atoi(have)
	y, _ := strconv.Atoi(c.Values[0])
	return bad == nil && compared(c.Operator, x, y)
}
