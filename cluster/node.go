package cluster

import (
	"starling/terms"

	"starling/cluster/vector"
)

// Node is a machine as it stands in the value: its facts, and what follows from them and from the slots. Only the methods of State change it.
type Node struct {
	edition *vector.Edition
	Index   NodeIndex
	NodeFacts
	// Class numbers the nodes with equal attributes and devices.
	Class uint32
	// Held are the slots that take room here, in no order.
	Held []SlotRef
	// lasting is what services hold here, which do not end by themselves.
	lasting terms.Resources
	// claimed is kept for work that waits.
	claimed terms.Amounts
	// given is what the node adds to what pools divide.
	given terms.Amounts
	// offerHash is that of the offer, row what the node's row adds to the digest of the value.
	offerHash, row uint64
}

// NodeFacts are the facts about a node.
type NodeFacts struct {
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
	panic("cluster: no free port on " + string(n.Name) + " although placement found one")
}

// room is what placement scans: the free resources of 64 nodes side by side.
type room struct {
	edition *vector.Edition
	free    [vector.PageRows]terms.Resources
	// eligible has a bit for every node that takes work, nodes one for every node by whom it is kept for.
	eligible uint64
	nodes    [terms.PurposeCount]uint64
	// most is at least the free resources of every eligible node, by whom it is kept for.
	most [terms.PurposeCount]terms.Resources
}

// NodeIndex is the dense number of a node, in the order in which nodes first wrote; it is never used again.
type NodeIndex uint32
