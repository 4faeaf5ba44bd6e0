// Package location tells where the output of an allocation is.
package location

import (
	"fmt"

	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/report"
	"starling/terms"
)

// Allocation is one, and where its output is.
type Allocation struct {
	ID   terms.AllocationID
	Node terms.NodeName
	// Absent says why there is no address.
	Address, Absent string
	// Index is that of the value which told so; Phase is the slot's, if the allocation is its present or last one.
	Index terms.Index
	Phase facts.Phase
	// Lost tells that its node has left the cluster before all was read.
	Lost bool
}

// Of is the allocation that a slot has.
func Of(state *cluster.State, r facts.SlotRef, slot facts.Slot) *Allocation {
	node := state.Node(slot.Node)
	at := &Allocation{ID: terms.AllocationID{Slot: state.NameOf(r), Order: slot.Order}, Node: node.Name,
		Index: state.Index, Phase: slot.Phase}
	at.find(state)
	return at
}

// In is an allocation whose placement is remembered.
func In(state *cluster.State, placed *report.Effect) *Allocation {
	at := &Allocation{ID: terms.AllocationID{Slot: placed.Slot, Order: placed.Order}, Node: placed.Node,
		Index: state.Index, Phase: facts.Stopped}
	if r, ok := state.RefOf(placed.Slot); ok {
		if slot, _ := state.SlotAt(r); slot.Order == placed.Order {
			at.Phase = slot.Phase
		}
	}
	at.find(state)
	return at
}

// find notes where the node answers, if it is there.
func (a *Allocation) find(state *cluster.State) {
	if IsThere(state, a.Node) {
		a.Address = state.NodeOf(a.Node).Offer.Address
	}
	a.Absent = view.Absent(state, a.Node)
}

// IsThere tells whether a node has a peer that can be asked.
func IsThere(state *cluster.State, name terms.NodeName) bool {
	node := state.NodeOf(name)
	return node != nil && node.Offer != nil && node.Peer != ""
}

// NotReached says which peer does not answer, if that is what an error means.
func (a *Allocation) NotReached(err error) error {
	failure := wire.FailureOf(err)
	if failure == nil {
		return nil
	}
	if failure.Code == wire.Unavailable && !failure.Decided {
		failure.Reason = fmt.Sprintf("the output of %s is on node %s, whose peer does not answer at %s: %s", a.ID, a.Node,
			a.Address, failure.Reason)
	}
	return failure
}
