package model

import (
	"fmt"
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/sim/model/reading"
)

// regroup notes for each job with plugins whether the list of its members is another than before the entry.
func (m *Model) regroup() {
	for _, j := range m.Jobs {
		switch members := m.members(j); {
		case len(j.newest().Plugins) == 0:
			j.members, j.roster = "", 0
		case members != j.members || j.roster == 0:
			j.members, j.roster = members, m.index
		}
	}
}

// members lists who a job has, and where, in the order of its newest version: a line for each task.
func (m *Model) members(j *Job) string {
	var text strings.Builder
	for i := range j.newest().Tasks {
		for _, t := range j.tasks {
			if t.name == j.newest().Tasks[i].Name {
				fmt.Fprintf(&text, "%s:%s\n", t.name, m.membersOf(t))
			}
		}
	}
	for _, t := range j.tasks {
		if t.spec(0) == nil && t.desired > 0 {
			fmt.Fprintf(&text, "%s:%s\n", t.name, m.membersOf(t))
		}
	}
	return text.String()
}

// found tells whether what is in a seat is found on its node, now or in a moment.
func (s *seat) found() bool {
	return s.Phase == facts.Assigned || s.Phase == facts.Running || s.Phase == facts.BackingOff
}

func (s *seat) told() bool { return s.found() && reading.Told(s.spec(), &s.Slot) }

func (m *Model) membersOf(t *task) string {
	text := ""
	for _, s := range t.slots {
		seat := s.main()
		if canary := &s.seats[facts.CanarySeat]; !seat.told() && canary.told() {
			seat = canary
		}
		if s.index >= t.desired || seat.Phase.Final() {
			continue
		}
		text += fmt.Sprintf(" %d", s.index)
		if !seat.told() {
			continue
		}
		text += fmt.Sprintf(" by %d", seat.Order)
		if offer := m.Nodes[seat.Node].offer; offer != nil && strings.Contains(offer.Address, ":") {
			text += " at " + offer.Address[:strings.LastIndex(offer.Address, ":")]
		}
		ports := slices.Clone(seat.ports)
		slices.SortFunc(ports, func(a, b facts.PortUse) int { return strings.Compare(a.Name, b.Name) })
		for _, p := range ports {
			text += fmt.Sprintf(" %s=%d", p.Name, p.Number)
		}
	}
	return text
}
