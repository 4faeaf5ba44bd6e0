package sim

import (
	"slices"

	"starling/cluster"
	"starling/schedule/place"
)

const (
	placementsMax = place.PlacementsMax
	// pageNodes is how many nodes a pack compares at a time.
	pageNodes = 64
)

// modelRoom is what is left on a node, added up anew for every entry.
type modelRoom struct {
	node    *modelNode
	free    cluster.Resources
	ports   []cluster.PortUse
	devices []cluster.DeviceUse
	// labels counts the instances with each label, own those of each task whose version counts its own.
	labels map[cluster.EnvVar]int
	own    map[*modelTask]int
}

func (r *modelRoom) portTaken(number uint16) bool {
	return slices.ContainsFunc(r.ports, func(p cluster.PortUse) bool { return p.Number == number })
}

// deviceLeft returns how many thousandths of a device nobody has.
func (r *modelRoom) deviceLeft(kind string, number uint32) int {
	left := 1000
	for _, d := range r.devices {
		if d.Kind == kind && d.Number == number {
			left -= int(d.Amount)
		}
	}
	return left
}

// rooms adds up what is left on every node.
func (m *model) rooms() []*modelRoom {
	rooms := make([]*modelRoom, len(m.nodes))
	for i, n := range m.nodes {
		rooms[i] = &modelRoom{node: n, labels: map[cluster.EnvVar]int{}, own: map[*modelTask]int{}}
		if n.offer != nil {
			rooms[i].free = n.offer.Capacity
		}
	}
	m.eachHeld(func(t *modelTask, s *modelSlot) { rooms[s.Node].take(t, s) })
	return rooms
}

func (r *modelRoom) take(t *modelTask, s *modelSlot) {
	spec := t.spec(s.Version)
	for _, l := range spec.Labels {
		r.labels[l]++
	}
	if spec.PerNodeMax > 0 || spec.SpreadOver != "" {
		r.own[t]++
	}
	for k := range r.free {
		r.free[k] -= spec.Resources[k]
	}
	r.ports, r.devices = append(r.ports, s.ports...), append(r.devices, s.devices...)
}

// placeAll places everything that waits and fits, one instance after the other, in rounds until a round places nothing,
// and tells whether it reached the end.
func (m *model) placeAll() bool {
	var rooms []*modelRoom
	placed := 0
	m.known = m.shapes()
	for before := -1; before < placed; {
		before = placed
		for _, j := range m.jobs {
			for n, t := range j.tasks {
				var running []int64
				for i := range t.slots {
					s := &t.slots[i]
					if !t.waits(s) {
						continue
					}
					if rooms == nil {
						rooms = m.rooms()
					}
					if running == nil {
						running = t.running(len(rooms))
					}
					room := m.choose(t, rooms, running)
					if room == nil {
						break
					}
					s.Slot = cluster.Slot{Order: m.index, Since: m.time, Node: room.node.number, Version: uint32(len(j.versions)),
						Phase: cluster.Assigned, Failures: s.Failures}
					room.give(t, s, cluster.SlotRef{Job: j.id, Task: uint16(n), Index: s.index})
					running[s.Node]++
					if placed++; placed == placementsMax {
						return false
					}
				}
			}
		}
	}
	m.beginPatience()
	return true
}

// running returns how many instances of the task each node has.
func (t *modelTask) running(nodes int) []int64 {
	counts := make([]int64, nodes)
	for i := range t.slots {
		if s := &t.slots[i]; holds(s.Phase) {
			counts[s.Node]++
		}
	}
	return counts
}

// fitting names a task of which something waits although it fits somewhere, "" if there is none.
func (m *model) fitting() string {
	rooms := m.rooms()
	for _, j := range m.jobs {
		for _, t := range j.tasks {
			if t.waiting() && m.choose(t, rooms, t.running(len(rooms))) != nil {
				return string(j.newest().Name) + "." + string(t.name)
			}
		}
	}
	return ""
}

// choose returns where the next instance of a task goes, nil if it fits nowhere: there where all its rules hold, or if
// that is nowhere, there where those hold that are not soft any more.
func (m *model) choose(t *modelTask, rooms []*modelRoom, running []int64) *modelRoom {
	if room := m.chooseBy(t, rooms, running, false); room != nil {
		return room
	}
	return m.chooseBy(t, rooms, running, true)
}

// chooseBy returns the node with the fewest instances, or the first page where it fits, there where the least is left;
// but first comes the value of the attribute that the task is spread over that has the fewest instances. Devices that it
// does not need are left to others.
func (m *model) chooseBy(t *modelTask, rooms []*modelRoom, running []int64, impatient bool) *modelRoom {
	spec := t.newest()
	var best *modelRoom
	var bestRank [4]int64
	for i, r := range rooms {
		if !r.fits(spec) || !m.suits(t, rooms, r, impatient) {
			continue
		}
		rank := [4]int64{0, running[i], r.wasted(spec), r.used()}
		if spec.Placement == cluster.Defragment {
			rank = [4]int64{0, r.wasted(spec), r.spoilt(spec, m.known), r.left(spec)}
		}
		if spec.Placement == cluster.Pack {
			rank = [4]int64{0, r.wasted(spec), int64(i / pageNodes), r.left(spec)}
		}
		for _, other := range rooms {
			if spec.SpreadOver != "" && other.value(spec.SpreadOver) == r.value(spec.SpreadOver) {
				rank[0] += int64(other.own[t])
			}
		}
		if best == nil || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = r, rank
		}
	}
	return best
}

// fits tells whether one instance can go to the node.
func (r *modelRoom) fits(spec *cluster.TaskSpec) bool {
	if r.node.offer == nil {
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
	_, ok := r.choosePorts(spec)
	return ok
}

// chooseDevices returns the numbers of the devices that a request gets, none if there are too few: the lowest that
// nobody uses, or for a share the one that has the least left for it.
func (r *modelRoom) chooseDevices(q cluster.DeviceRequest) []uint32 {
	var whole []uint32
	share, least := uint32(0), 1001
	for _, d := range r.node.offer.Devices {
		if d.Kind != q.Kind || len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
			continue
		}
		for number := range d.Count {
			left := r.deviceLeft(d.Kind, number)
			if left == 1000 {
				whole = append(whole, number)
			}
			if left >= int(q.Amount) && left < least {
				share, least = number, left
			}
		}
	}
	switch count := int(q.Amount / 1000); {
	case count > 0 && count <= len(whole):
		return whole[:count]
	case count == 0 && least <= 1000:
		return []uint32{share}
	}
	return nil
}

// choosePorts returns a port for every request, if there are enough. Fixed ones come first; the others go round the
// offered range from where the last search ended.
func (r *modelRoom) choosePorts(spec *cluster.TaskSpec) ([]uint16, bool) {
	chosen := make([]uint16, len(spec.Ports))
	mine := map[uint16]bool{}
	for i, p := range spec.Ports {
		if p.Number != 0 && r.portTaken(p.Number) {
			return nil, false
		}
		chosen[i], mine[p.Number] = p.Number, true
	}
	offer := r.node.offer
	next, tries := r.node.portNext, int(offer.PortLast)-int(offer.PortFirst)+1
	for i := range chosen {
		for ; chosen[i] == 0; tries-- {
			if tries == 0 || offer.PortLast == 0 {
				return nil, false
			}
			if next < offer.PortFirst || next > offer.PortLast {
				next = offer.PortFirst
			}
			if !r.portTaken(next) && !mine[next] {
				chosen[i] = next
			}
			next++
		}
	}
	return chosen, true
}

// give takes room for a slot that was placed.
func (r *modelRoom) give(t *modelTask, s *modelSlot, ref cluster.SlotRef) {
	spec := t.newest()
	ports, _ := r.choosePorts(spec)
	for i, p := range spec.Ports {
		s.ports = append(s.ports, cluster.PortUse{Number: ports[i], Name: p.Name, Slot: ref})
		if p.Number == 0 {
			r.node.portNext = ports[i] + 1
		}
	}
	for _, d := range spec.Devices {
		for _, number := range r.chooseDevices(d) {
			s.devices = append(s.devices, cluster.DeviceUse{Kind: d.Kind, Number: number, Amount: min(d.Amount, 1000), Slot: ref})
		}
	}
	r.take(t, s)
}

// part returns how much of a node's capacity an amount is, in 1024ths.
func (r *modelRoom) part(k cluster.Kind, amount int64) int64 {
	return amount / (r.node.offer.Capacity[k]/1024 + 1)
}

// used is how much of the node's processor and memory is taken.
func (r *modelRoom) used() int64 {
	capacity := r.node.offer.Capacity
	return r.part(cluster.CPU, capacity[cluster.CPU]-r.free[cluster.CPU]) +
		r.part(cluster.Memory, capacity[cluster.Memory]-r.free[cluster.Memory])
}

// left is how much of both would be left after one instance; what the node does not have at all does not count.
func (r *modelRoom) left(spec *cluster.TaskSpec) int64 {
	sum := int64(0)
	for _, k := range []cluster.Kind{cluster.CPU, cluster.Memory} {
		if r.node.offer.Capacity[k] > 0 {
			sum += r.part(k, r.free[k]-spec.Resources[k])
		}
	}
	return sum
}

// wasted is 1 for a node whose devices the task would leave unused, and which others may need, and below 0 for a node
// that is kept for such work.
func (r *modelRoom) wasted(spec *cluster.TaskSpec) int64 {
	if r.exclusive() {
		return -1
	}
	if len(r.node.offer.Devices) > 0 && len(spec.Devices) == 0 {
		return 1
	}
	return 0
}
