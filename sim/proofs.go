package sim

import (
	"slices"

	"starling/cluster/facts"
	"starling/replica"
	"starling/terms"
)

// vouches tells whether the machine could prove at this moment that its peer is still a member: it asks the engine
// whether its pulse lives, and that has never been interrupted.
func (m *machine) vouches() bool {
	return m.up && m.begun && !m.claimed && !m.cutRead && !m.cutWrite && m.w.now >= m.w.outageUntil &&
		!m.disk.interrupted && m.w.pulseOf(m.self()).alive
}

// prove tells the supervisors of tasks with stop_after whether they are still wanted. One that nobody tells so stops
// its task when that time is over, whatever has become of the peer.
func (m *machine) prove() {
	var guarded []terms.AllocationID
	if m.vouches() {
		guarded = m.core.Guarded()
	}
	for _, t := range m.tasks {
		if t.stopAfter == 0 {
			continue
		}
		proved := slices.Contains(guarded, t.ID)
		if t.proved && !proved {
			t.lapses++
			lapses := t.lapses
			m.w.after(int(t.stopAfter), func() {
				if !t.proved && t.lapses == lapses {
					m.w.after(m.w.between(1, int(t.grace)+1), func() { m.end(t, facts.NodeLost, 137) })
				}
			})
		}
		t.proved = proved
	}
}

// mustMoveOn tells whether the machine needs another life because the pulse of this one was interrupted, and it has
// tasks for which nothing else could vouch.
func (m *machine) mustMoveOn() bool {
	return m.disk.interrupted && !m.cutRead && !m.cutWrite && len(m.core.Guarded()) > 0
}

// checkAlone checks that no program of the slot lives anywhere when one of a stateful job begins. It is promised as
// long as clocks run on, names are not given twice, and nobody says of the living that they left.
func (w *World) checkAlone(m *machine, order *replica.Order) {
	j := m.core.State().JobOf(order.ID.Slot.Job)
	excused := w.fired[clockJump] + w.fired[twinName] + w.fired[falseDeath] + w.fired[leaveGracefully]
	if j == nil || j.Spec.Type != terms.Stateful || excused > 0 {
		return
	}
	for _, other := range w.machines {
		for _, t := range other.tasks {
			if t.ID.Slot == order.ID.Slot && t.Ended == facts.NotEnded {
				w.fail("%s begins on %s while %s lives on %s", order.ID, m.label, t.ID, other.label)
			}
		}
	}
}
