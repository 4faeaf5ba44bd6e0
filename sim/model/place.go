package model

import (
	"slices"

	"starling/cluster"
	"starling/terms"
)

// pageNodes is how many nodes a pack compares at a time.
const pageNodes = 64

// room is what is left on a node, added up anew for every entry.
type room struct {
	node    *Node
	free    terms.Resources
	ports   []cluster.PortUse
	devices []cluster.DeviceUse
	// labels counts the instances with each label, own those of each task whose version counts its own.
	labels map[terms.EnvVar]int
	own    map[*task]int
	// kept is how much of the devices is kept for others, in thousandths.
	kept map[string]int
}

func (r *room) portTaken(number uint16) bool {
	return slices.ContainsFunc(r.ports, func(p cluster.PortUse) bool { return p.Number == number })
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

// roomWithout returns what would be left on a node without some of its seats.
func (m *Model) roomWithout(n *Node, gone func(*seat) bool) *room {
	r := m.empty(n)
	for _, s := range m.on(n) {
		if !gone(s) {
			r.take(s)
		}
	}
	return r
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

func (s *seat) ref() cluster.SlotRef {
	return cluster.SlotRef{Job: s.job().ID, Task: uint16(s.slot.task.number), Index: s.slot.index, Seat: s.kind}
}

// special tells whether a waiting seat wants a particular node or version.
func (s *seat) special() bool { return s.Version != 0 || s.Wish != cluster.AnyNode }

// look adds up what is left, unless nothing but what was placed has changed since.
func (p *placing) look() {
	if p.rooms == nil {
		p.rooms = p.m.rooms()
	}
}

// wished returns the room for one seat by what it wishes of its last node, nil if there is none.
func (p *placing) wished(s *seat) *room {
	q, running := s.search(), s.slot.task.running(len(p.rooms))
	isLast := func(r *room) bool { return r.node.number == s.Node }
	var last *room
	if s.Order != 0 || s.Wish == cluster.OnlyNode {
		last = p.choose(q, running, isLast)
	}
	switch {
	case s.Wish == cluster.OnlyNode, s.Wish == cluster.PreferNode && last != nil:
		return last
	case s.Wish == cluster.AvoidNode:
		other := p.choose(q, running, func(r *room) bool { return s.Order == 0 || !isLast(r) })
		if other == nil {
			return last
		}
		return other
	}
	return p.choose(q, running, nil)
}

// assign gives a room to a waiting seat. While an update runs, its instances are to be healthy in time.
func (p *placing) assign(s *seat, r *room) {
	j := s.job()
	p.trail = append(p.trail, step{s, *s, r.node.portNext})
	version := s.Version
	if version == 0 {
		version = j.version()
	}
	if before := s.spec(); before != nil && onPeers(before) {
		p.spots.take(s.slot.task, r.node, 1)
	}
	s.Slot = cluster.Slot{
		Order: p.m.index, Since: p.m.time, Node: r.node.number, Version: version, Phase: cluster.Assigned, Failures: s.Failures, Health: s.Health,
	}
	if limit := j.newest().Update.HealthyDeadlineMillis; limit > 0 && version == j.version() && j.update.State.Rolls() {
		s.Deadline = p.m.time + terms.Time(limit)
	}
	r.give(s)
}

// running returns how many instances of the task each node has.
func (t *task) running(nodes int) []int64 {
	counts := make([]int64, nodes)
	t.each(func(s *seat) {
		if s.Phase.Holds() {
			counts[s.Node]++
		}
	})
	return counts
}

// choose returns where the next instance goes, among rooms that may be named, nil if it fits nowhere: there where all its
// rules hold, or if that is nowhere, there where those hold that are not soft any more.
func (p *placing) choose(q search, running []int64, among func(*room) bool) *room {
	if room := p.chooseBy(q, running, among, false); room != nil {
		return room
	}
	return p.chooseBy(q, running, among, true)
}

// chooseBy returns the node with the fewest instances, or the first page where it fits, there where the least is left;
// but first comes the value of the attribute that the task is spread over that has the fewest instances. Devices that it
// does not need are left to others.
func (p *placing) chooseBy(q search, running []int64, among func(*room) bool, impatient bool) *room {
	var best *room
	var bestRank [5]int64
	for i, r := range p.rooms {
		if among != nil && !among(r) || !r.fits(q.spec) || p.spots.left(q.t, r.node) == 0 && onPeers(q.spec) || !p.suits(q, r, impatient) {
			continue
		}
		rank := [5]int64{0, running[i], r.wasted(q.spec), r.used()}
		if q.spec.Placement == terms.Defragment {
			stranded, useless := r.spoilt(q.spec, p.known)
			rank = [5]int64{0, r.wasted(q.spec), stranded, useless, r.left(q.spec)}
		}
		if q.spec.Placement == terms.Pack {
			rank = [5]int64{0, r.wasted(q.spec), int64(i / pageNodes), r.left(q.spec)}
		}
		for _, other := range p.rooms {
			if q.spec.SpreadOver != "" && other.value(q.spec.SpreadOver) == r.value(q.spec.SpreadOver) {
				rank[0] += int64(other.own[q.t])
			}
		}
		if best == nil || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = r, rank
		}
	}
	return best
}

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

// chooseDevices returns the numbers of the devices that a request gets, none if there are too few: the lowest that
// nobody uses, or for a share the one that has the least left for it.
func (r *room) chooseDevices(q terms.DeviceRequest) []uint32 {
	var whole []uint32
	share, least, rest := uint32(0), 1001, 0
	for _, d := range r.node.offer.Devices {
		if d.Kind != q.Kind || len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
			continue
		}
		for number := range d.Count {
			left := r.deviceLeft(d.Kind, number)
			if left == 1000 {
				whole = append(whole, number)
			} else {
				rest += max(left, 0)
			}
			if left >= int(q.Amount) && left < least {
				share, least = number, left
			}
		}
	}
	kept := (r.kept[q.Kind]+999)/1000 + r.gone(q.Kind)
	rest -= max(r.kept[q.Kind]-1000*len(whole), 0)
	switch count := int(q.Amount / 1000); {
	case count > 0 && count <= len(whole)-kept:
		return whole[:count]
	case count == 0 && (least < 1000 && rest >= int(q.Amount) || least == 1000 && len(whole) > kept):
		return []uint32{share}
	}
	return nil
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
// offered range from where the last search ended, and take what a task of the job asks for only where nothing else is free.
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
		s.ports = append(s.ports, cluster.PortUse{Number: ports[i], Name: p.Name})
		if p.Number == 0 {
			r.node.portNext = ports[i] + 1
		}
	}
	for _, d := range spec.Devices {
		for _, number := range r.chooseDevices(d) {
			s.devices = append(s.devices, cluster.DeviceUse{Kind: d.Kind, Number: number, Amount: min(d.Amount, 1000)})
		}
	}
	r.take(s)
}

// part returns how much of a node's capacity an amount is, in 1024ths.
func (r *room) part(k terms.Kind, amount int64) int64 {
	return amount / (r.node.offer.Capacity[k]/1024 + 1)
}

// used is how much of the node's processor and memory is taken.
func (r *room) used() int64 {
	capacity := r.node.offer.Capacity
	return r.part(terms.CPU, capacity[terms.CPU]-r.free[terms.CPU]) +
		r.part(terms.Memory, capacity[terms.Memory]-r.free[terms.Memory])
}

// left is how much of both would be left after one instance; what the node does not have at all does not count.
func (r *room) left(spec *terms.Task) int64 {
	sum := int64(0)
	for _, k := range []terms.Kind{terms.CPU, terms.Memory} {
		if r.node.offer.Capacity[k] > 0 {
			sum += r.part(k, r.free[k]-spec.Resources[k])
		}
	}
	return sum
}

// wasted is 1 for a node whose devices the task would leave unused, and which others may need, and below 0 for a node
// that is kept for such work.
func (r *room) wasted(spec *terms.Task) int64 {
	if r.exclusive() {
		return -1
	}
	if len(r.node.offer.Devices) > 0 && len(spec.Devices) == 0 {
		return 1
	}
	return 0
}
