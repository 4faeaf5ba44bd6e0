// Package roster reads the members of jobs off the value: which instances a job is to have, and where each is found.
package roster

import (
	"slices"
	"strings"

	"starling/cluster"
)

// Member is an instance of a job, as the others know it.
type Member struct {
	// Index is its number in its task.
	Index uint32
	// Address is that of the node where it lives, without a port. It is "" for one that waits for a node, leaves its node, or
	// is out of reach.
	Address string
	// Ports are those that it has there, ordered by name.
	Ports []cluster.PortUse
}

// Members returns the members of a task, ordered by number: all slots that it is to have and that have not ended for good.
func Members(s *cluster.State, j *cluster.Job, task int) []Member {
	t := j.Tasks[task]
	all := make([]Member, 0, t.Desired)
	for index := range min(t.Desired, uint32(t.Slots.Len())) {
		slot := t.Slots.At(int(index))
		if slot.Phase.Final() {
			continue
		}
		m := Member{Index: index}
		if lives(slot.Phase) {
			m.Address, m.Ports = at(s.Node(slot.Node), cluster.SlotRef{Job: j.ID, Task: uint16(task), Index: index})
		}
		all = append(all, m)
	}
	return all
}

// lives tells whether a slot in this phase is found on its node, now or in a moment.
func lives(p cluster.Phase) bool {
	return p == cluster.Assigned || p == cluster.Running || p == cluster.Delayed
}

// at returns where a slot is found on its node. A node's address is that at which its peer answers.
func at(n *cluster.Node, r cluster.SlotRef) (address string, ports []cluster.PortUse) {
	for _, use := range n.Ports {
		if use.Slot == r {
			ports = append(ports, use)
		}
	}
	slices.SortStableFunc(ports, func(a, b cluster.PortUse) int { return strings.Compare(a.Name, b.Name) })
	if n.Offer == nil {
		return "", ports
	}
	colon := strings.LastIndexByte(n.Offer.Address, ':')
	return strings.Trim(n.Offer.Address[:max(colon, 0)], "[]"), ports
}
