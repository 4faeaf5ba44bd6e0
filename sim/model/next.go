package model

import (
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// timeAt is the time at an entry. Under rules.Next it is never that of the entry before.
func (m *Model) timeAt(e *command.Entry) terms.Time {
	if m.rules < rules.Next || e.Time > m.time {
		return max(m.time, e.Time)
	}
	return m.time + 1
}

func (m *Model) passTime(c *command.PassTime) bool {
	m.time += terms.Time(c.Millis)
	return true
}
