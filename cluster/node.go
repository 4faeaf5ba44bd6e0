package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/vector"
	"starling/terms"
)

// Node is a machine as it stands in the value: its facts, and what follows from them and from the slots. Only the methods of State change it.
type Node struct {
	edition *vector.Edition
	Index   facts.NodeIndex
	facts.Node
	// Class numbers the nodes with equal attributes and devices.
	Class uint32
	// Held are the slots that take room here, in no order.
	Held []facts.SlotRef
	// lasting is what services hold here, which do not end by themselves.
	lasting terms.Resources
	// claimed is kept for work that waits.
	claimed terms.Amounts
	// given is what the node adds to what pools divide.
	given terms.Amounts
	// offerHash is that of the offer, row what the node's row adds to the digest of the value.
	offerHash, row uint64
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
