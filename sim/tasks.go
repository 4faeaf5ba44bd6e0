package sim

import (
	"slices"
	"strconv"

	"starling/cluster"
	"starling/replica"
)

// start lets the driver begin an allocation. A simulated program is told by its command how many milliseconds it
// takes; 0 is for ever.
func (m *machine) start(order replica.Order) {
	life := m.life
	m.w.after(m.w.between(1, 30), func() {
		refused := m.w.chance(failStart)
		if m.life != life && (refused || m.w.rng.IntN(2) == 0) {
			return
		}
		if !refused && !slices.ContainsFunc(m.tasks, func(t *running) bool { return t.ID == order.ID }) {
			m.exec(order)
		}
		if m.life == life {
			refusal := ""
			if refused {
				refusal = "no such program"
			}
			m.core.DriverStarted(order.ID, refusal)
			m.driverChanged()
			m.wake()
		}
	})
}

func (m *machine) exec(order replica.Order) {
	t := &running{LocalTask: replica.LocalTask{ID: order.ID}, spec: order.Spec}
	at, _ := slices.BinarySearchFunc(m.tasks, t, func(a, b *running) int { return a.ID.Compare(b.ID) })
	m.tasks = slices.Insert(m.tasks, at, t)
	m.w.clients.ran(order.ID)
	m.w.tell(string(m.name), "starts %s", order.ID)
	millis, _ := strconv.Atoi(order.Spec.Command[1])
	if m.w.chance(slowTask) {
		millis *= 10
	}
	failing := m.w.chance(failTask)
	switch {
	case failing:
		m.w.after(m.w.between(0, 2000), func() { m.end(t, cluster.ByItself, 1) })
	case millis > 0:
		m.w.after(millis, func() { m.end(t, cluster.ByItself, 0) })
	}
}

// end lets a task end; the peer learns of it if it runs.
func (m *machine) end(t *running, how cluster.Ending, code int32) {
	if t.Ended != cluster.NotEnded {
		return
	}
	t.Ended, t.ExitCode = how, code
	m.w.tell(string(m.name), "has %s end: %s %d", t.ID, how, code)
	if how == cluster.ByItself && code == 0 {
		m.w.clients.succeeded[t.ID] = true
	}
	life := m.life
	m.w.after(m.w.between(0, 10), func() {
		if m.life == life && m.up && m.begun {
			m.driverChanged()
			m.wake()
		}
	})
}

// stop ends a task, at once or when it has used up its grace.
func (m *machine) stop(order replica.StopOrder) {
	for _, t := range m.tasks {
		if t.ID == order.ID && !t.stopping {
			t.stopping = true
			m.w.after(m.w.between(1, int(order.GraceMillis)+1), func() { m.end(t, cluster.OnRequest, 143) })
		}
	}
}
