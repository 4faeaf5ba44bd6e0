package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/sim/model/amounts"
	"starling/terms"
)

// room is what is left on a node, added up anew for every entry.
type room struct {
	node    *Node
	free    terms.Resources
	ports   []facts.PortUse
	devices []facts.DeviceUse
	// labels counts the instances with each label, own those of each task whose version counts its own.
	labels map[terms.EnvVar]int
	own    map[*task]int
	// kept is how much of the devices is kept for others, in thousandths.
	kept map[string]int
}

func (r *room) portTaken(number uint16) bool {
	return slices.ContainsFunc(r.ports, func(p facts.PortUse) bool { return p.Number == number })
}

// deviceLeft returns how many thousandths of a device nobody has.
func (r *room) deviceLeft(kind string, number uint32) int {
	left := 1000
	for _, d := range r.devices {
		if d.Kind == kind && d.Number == number {
			left -= int(d.Amount)
		}
	}
	return left
}

// rooms adds up what is left on every node.
func (m *Model) rooms() []*room { return m.roomsWithout(func(*seat) bool { return false }) }

// roomsWithout adds up what would be left without some seats.
func (m *Model) roomsWithout(gone func(*seat) bool) []*room {
	rooms := make([]*room, len(m.Nodes))
	for i, n := range m.Nodes {
		rooms[i] = m.empty(n)
	}
	for _, j := range m.Jobs {
		j.each(func(s *seat) {
			if s.Phase.Holds() && !gone(s) {
				rooms[s.Node].take(s)
			}
		})
	}
	return rooms
}

// empty returns a node's room as if it ran nothing, but for what is kept there.
func (m *Model) empty(n *Node) *room {
	r := &room{node: n, labels: map[terms.EnvVar]int{}, own: map[*task]int{}}
	if n.offer != nil {
		r.free = n.offer.Capacity
	}
	kept := m.kept(n)
	for k := range r.free {
		r.free[k] -= kept[k]
	}
	r.kept = map[string]int{"gpu": int(kept[terms.GPU]), "peers": int(kept[terms.VirtualPeers])}
	return r
}

// kept returns what of a node is kept for those that wait.
func (m *Model) kept(n *Node) (sum terms.Amounts) {
	for _, c := range m.nominations {
		for _, one := range c.Seats {
			for k, amount := range one.Need {
				if one.Node == n.number {
					sum[k] += amount * int64(one.Count)
				}
			}
		}
	}
	return sum
}

// take notes what a seat has.
func (r *room) take(s *seat) {
	spec := s.spec()
	for _, l := range spec.Labels {
		r.labels[l]++
	}
	if spec.PerNodeMax > 0 || spec.SpreadOver != "" {
		r.own[s.slot.task]++
	}
	for k := range r.free {
		r.free[k] -= spec.Resources[k]
	}
	for _, p := range s.ports {
		p.Slot = s.ref()
		r.ports = append(r.ports, p)
	}
	for _, d := range s.devices {
		d.Slot = s.ref()
		r.devices = append(r.devices, d)
	}
}

func (s *seat) ref() facts.SlotRef {
	return facts.SlotRef{Job: s.job().ID, Task: uint16(s.slot.task.number), Index: s.slot.index, Seat: s.kind}
}

// special tells whether a waiting seat wants a particular node or version.
func (s *seat) special() bool { return s.Version != 0 || s.Preference != facts.AnyNode }

// fits tells whether one instance can go to the node.
func (r *room) fits(spec *terms.Task) bool {
	if spec == nil || !r.node.open() {
		return false
	}
	for k, amount := range spec.Resources {
		if amount > r.free[k] {
			return false
		}
	}
	for _, d := range spec.Devices {
		if len(r.chooseDevices(d)) == 0 {
			return false
		}
	}
	_, ok := r.choosePorts(&terms.Job{}, spec)
	return ok
}

// chooseDevices returns the numbers of the devices that a request gets, none if there are too few.
func (r *room) chooseDevices(q terms.DeviceRequest) []uint32 {
	left := amounts.Devices{Left: r.deviceLeft, Kept: r.kept[q.Kind], Gone: r.gone(q.Kind)}
	return left.Choose(r.node.offer.Devices, q)
}

// gone returns how many virtual peers are used that the node does not offer any more: it takes no others for them.
func (r *room) gone(kind string) (count int) {
	for _, use := range r.devices {
		if kind == "peers" && use.Kind == kind && int64(use.Number) >= r.node.offers()[terms.VirtualPeers]/1000 {
			count++
		}
	}
	return count
}

// choosePorts returns a port for every request, if there are enough. Fixed ones come first; the others go round the
// offered range from where the last search ended, and take what a task of the job asks for only where nothing else is
// free.
func (r *room) choosePorts(j *terms.Job, spec *terms.Task) ([]uint16, bool) {
	chosen, mine := make([]uint16, len(spec.Ports)), map[uint16]bool{}
	for i, p := range spec.Ports {
		if p.Number != 0 && r.portTaken(p.Number) {
			return nil, false
		}
		chosen[i], mine[p.Number] = p.Number, true
	}
	next := r.node.portNext
	for i := range chosen {
		if chosen[i] != 0 {
			continue
		}
		free := r.freePorts(next, mine)
		if len(free) == 0 {
			return nil, false
		}
		at := slices.IndexFunc(free, func(number uint16) bool { return !j.AsksForPort(number) })
		chosen[i] = free[max(at, 0)]
		mine[chosen[i]], next = true, chosen[i]+1
	}
	return chosen, true
}

// freePorts lists the free ports of the offered range from one on, and then those before it.
func (r *room) freePorts(from uint16, mine map[uint16]bool) (free []uint16) {
	var before []uint16
	first, last := r.node.offer.PortFirst, r.node.offer.PortLast
	for number := int(first); last > 0 && number <= int(last); number++ {
		switch n := uint16(number); {
		case r.portTaken(n) || mine[n]:
		case n < from && from <= last:
			before = append(before, n)
		default:
			free = append(free, n)
		}
	}
	return append(free, before...)
}

// give gives ports and devices of the room to a seat.
func (r *room) give(s *seat) {
	spec := s.spec()
	ports, _ := r.choosePorts(s.job().newest(), spec)
	for i, p := range spec.Ports {
		s.ports = append(s.ports, facts.PortUse{Number: ports[i], Name: p.Name})
		if p.Number == 0 {
			r.node.portNext = ports[i] + 1
		}
	}
	for _, d := range spec.Devices {
		for _, number := range r.chooseDevices(d) {
			s.devices = append(s.devices, facts.DeviceUse{Kind: d.Kind, Number: number, Amount: min(d.Amount, 1000)})
		}
	}
	r.take(s)
}

func (r *room) exclusive() bool {
	return slices.ContainsFunc(r.node.offer.Attributes, func(a terms.EnvVar) bool { return a.Name == "exclusive" })
}

// value returns what the node offers as an attribute, "" if it does not.
func (r *room) value(attribute string) string {
	value, _ := r.node.attribute(attribute)
	return value
}
