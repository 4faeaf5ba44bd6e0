package facts

import (
	"slices"

	"starling/terms"
)

// Node is the facts about a node.
type Node struct {
	Name terms.NodeName
	// Peer is the member that lives on it now, "" if none does.
	Peer terms.PeerID
	// Departed is the highest incarnation that has left: a tombstone. Entries of it and of all before it are void.
	Departed uint32
	// Sessions are the incarnations above Departed that have written, in order.
	Sessions []Session
	// Offer is what its peer volunteered; nil while it has volunteered nothing.
	Offer *terms.Offer
	// Drain tells that it is being emptied.
	Drain Drain
	// Ports are the TCP ports given to slots here, ordered by number.
	Ports []PortUse
	// Devices are the devices and shares of devices given to slots here, ordered by kind and number.
	Devices []DeviceUse
	// PortNext is where the search for a free port begins, so that ports are not used again at once.
	PortNext uint16
}

// Drain says that a node is given nothing new and gives away what it has.
type Drain struct {
	On bool
	// Deadline is when whatever still runs there is stopped; 0 once that has happened.
	Deadline terms.Time
}

// Session is what is known of the writing of one incarnation.
type Session struct {
	Incarnation uint32
	// Seq is the number of its last entry that was taken.
	Seq uint64
}

// PortUse tells which slot has a port. Name is the request's.
type PortUse struct {
	Number uint16
	Name   string
	Slot   SlotRef
}

// DeviceUse tells how much of a device a slot has: of number Number of its kind.
type DeviceUse struct {
	Kind   string
	Number uint32
	Amount terms.Millidevices
	Slot   SlotRef
}

// NodeIndex is the dense number of a node, in the order in which nodes first wrote; it is never used again.
type NodeIndex uint32

// Clone returns a copy that shares no lists with n.
func (n Node) Clone() Node {
	n.Sessions, n.Ports, n.Devices = slices.Clone(n.Sessions), slices.Clone(n.Ports), slices.Clone(n.Devices)
	return n
}

// LastSeq returns the number of the last entry taken from an incarnation, 0 if none was.
func (n *Node) LastSeq(incarnation uint32) uint64 {
	for _, session := range n.Sessions {
		if session.Incarnation == incarnation {
			return session.Seq
		}
	}
	return 0
}

// SetLastSeq notes the number of the last entry taken from an incarnation.
func (n *Node) SetLastSeq(incarnation uint32, seq uint64) {
	for i := range n.Sessions {
		if n.Sessions[i].Incarnation == incarnation {
			n.Sessions[i].Seq = seq
			return
		}
	}
	at := 0
	for at < len(n.Sessions) && n.Sessions[at].Incarnation < incarnation {
		at++
	}
	n.Sessions = slices.Insert(n.Sessions, at, Session{Incarnation: incarnation, Seq: seq})
}

// PortUsed tells whether a slot has the port.
func (n *Node) PortUsed(number uint16) bool {
	for i := range n.Ports {
		if n.Ports[i].Number == number {
			return true
		}
	}
	return false
}

// PortsFree returns how many ports are left for requests that leave the choice to the scheduler.
func (n *Node) PortsFree() int {
	free := int(n.Offer.PortLast) - int(n.Offer.PortFirst) + 1
	if n.Offer.PortLast == 0 {
		free = 0
	}
	for i := range n.Ports {
		if n.Ports[i].Number >= n.Offer.PortFirst && n.Ports[i].Number <= n.Offer.PortLast {
			free--
		}
	}
	return free
}

// Give assigns ports and devices to a slot. Placement has checked that there are enough. Ports that were asked for by
// number come first, so that none of them is chosen for another request.
func (n *Node) Give(j *terms.Job, spec *terms.Task, r SlotRef) {
	for _, request := range spec.Ports {
		if request.Number != 0 {
			n.givePort(PortUse{Number: request.Number, Name: request.Name, Slot: r})
		}
	}
	for _, request := range spec.Ports {
		if request.Number == 0 {
			number := n.freePort(j)
			n.PortNext = number + 1
			n.givePort(PortUse{Number: number, Name: request.Name, Slot: r})
		}
	}
	for i := range spec.Devices {
		n.giveDevices(&spec.Devices[i], r)
	}
}

// freePort returns a free port of the offered range, from PortNext on: such as the job asks for by number come last.
func (n *Node) freePort(j *terms.Job) uint16 {
	first, last := n.Offer.PortFirst, n.Offer.PortLast
	start := n.PortNext - first
	if start > last-first {
		start = 0
	}
	for _, spared := range [...]bool{true, false} {
		for i := range uint32(last-first) + 1 {
			number := first + uint16((uint32(start)+i)%(uint32(last-first)+1))
			if !n.PortUsed(number) && !(spared && j.AsksForPort(number)) {
				return number
			}
		}
	}
	panic("facts: no free port on " + string(n.Name) + " although placement found one")
}

func (n *Node) givePort(use PortUse) {
	at := len(n.Ports)
	for at > 0 && n.Ports[at-1].Number > use.Number {
		at--
	}
	n.Ports = slices.Insert(n.Ports, at, use)
}

// DeviceOf returns what the node offers of a kind.
func (n *Node) DeviceOf(kind string) terms.DeviceOffer {
	if n.Offer != nil {
		for _, d := range n.Offer.Devices {
			if d.Kind == kind {
				return d
			}
		}
	}
	return terms.DeviceOffer{Kind: kind}
}

// EachDeviceInUse visits the devices of a kind that are given away, whole or in part, in the order of their numbers.
// Some may have numbers that the node does not offer any more.
func (n *Node) EachDeviceInUse(kind string, visit func(number uint32, used terms.Millidevices)) {
	for i := 0; i < len(n.Devices); {
		first, used := &n.Devices[i], terms.Millidevices(0)
		for ; i < len(n.Devices) && n.Devices[i].Kind == first.Kind && n.Devices[i].Number == first.Number; i++ {
			used += n.Devices[i].Amount
		}
		if first.Kind == kind {
			visit(first.Number, used)
		}
	}
}

// giveDevices gives a slot what it asked for, which placement has found: the lowest unused devices, or a share of the
// device in use that has the least left for it.
func (n *Node) giveDevices(q *terms.DeviceRequest, r SlotRef) {
	if !q.Share() {
		for range q.Amount / terms.WholeDevice {
			n.giveDevice(DeviceUse{q.Kind, n.unusedDevice(q.Kind), terms.WholeDevice, r})
		}
		return
	}
	number, least := n.unusedDevice(q.Kind), terms.WholeDevice
	count := n.DeviceOf(q.Kind).Count
	n.EachDeviceInUse(q.Kind, func(inUse uint32, used terms.Millidevices) {
		if left := terms.WholeDevice - used; inUse < count && left >= q.Amount && left < least {
			number, least = inUse, left
		}
	})
	n.giveDevice(DeviceUse{q.Kind, number, q.Amount, r})
}

// unusedDevice returns the lowest number of a kind that no instance has.
func (n *Node) unusedDevice(kind string) uint32 {
	number := uint32(0)
	n.EachDeviceInUse(kind, func(inUse uint32, _ terms.Millidevices) {
		if inUse == number {
			number++
		}
	})
	return number
}

// giveDevice notes a use behind those that come before it.
func (n *Node) giveDevice(use DeviceUse) {
	at := len(n.Devices)
	for at > 0 && (n.Devices[at-1].Kind > use.Kind ||
		n.Devices[at-1].Kind == use.Kind && n.Devices[at-1].Number > use.Number) {
		at--
	}
	n.Devices = slices.Insert(n.Devices, at, use)
}

// TakeBack takes the ports and devices of a slot back.
func (n *Node) TakeBack(r SlotRef) {
	n.Ports = slices.DeleteFunc(n.Ports, func(u PortUse) bool { return u.Slot == r })
	n.Devices = slices.DeleteFunc(n.Devices, func(u DeviceUse) bool { return u.Slot == r })
}

// Rename notes that the ports and devices of one seat are those of another now.
func (n *Node) Rename(from, to SlotRef) {
	for i := range n.Ports {
		if n.Ports[i].Slot == from {
			n.Ports[i].Slot = to
		}
	}
	for i := range n.Devices {
		if n.Devices[i].Slot == from {
			n.Devices[i].Slot = to
		}
	}
}
