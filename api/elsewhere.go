package api

import (
	"fmt"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// location is where the output of an allocation is.
type location struct {
	id      terms.AllocationID
	node    terms.NodeName
	address string
	// index is that of the value which told so; phase is the slot's, if the allocation is its present or last one.
	index terms.Index
	phase facts.Phase
}

// slotNamed is a request that names a slot by job, task and number.
type slotNamed interface {
	GetJob() string
	GetTask() string
	GetSlot() uint32
}

// slotOf returns the slot that the request names.
func slotOf(state *cluster.State, request slotNamed) (facts.SlotRef, error) {
	j, err := jobOf(state, request.GetJob())
	if err != nil {
		return facts.SlotRef{}, err
	}
	task := 0
	switch {
	case request.GetTask() != "":
		if task, err = taskIndexOf(j, request.GetTask()); err != nil {
			return facts.SlotRef{}, err
		}
	case len(j.Tasks) > 1:
		return facts.SlotRef{}, invalid("the request", terms.Problem{
			Path: "task", Reason: fmt.Sprintf("must say which of the tasks of %s is meant: %s", j.Name(), taskNames(j))})
	}
	r := facts.SlotRef{Job: j.ID, Task: uint16(task), Index: request.GetSlot()}
	if _, ok := state.SlotAt(r); !ok {
		return r, &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
			"%s.%s has no instance %d: it has %d, counted from 0", j.Name(), j.Tasks[task].Name, r.Index,
			j.Tasks[task].Slots.Len())}
	}
	return r, nil
}

func locationOf(state *cluster.State, r facts.SlotRef, slot facts.Slot) *location {
	node := state.Node(slot.Node)
	at := &location{
		id:   terms.AllocationID{Slot: state.NameOf(r), Order: slot.Order},
		node: node.Name, index: state.Index, phase: slot.Phase,
	}
	if node.Offer != nil && node.Peer != "" {
		at.address = node.Offer.Address
	}
	return at
}

// passOn sends what the peer on the allocation's node answers.
func passOn[M any](s *server, at *location, to *connect.ServerStream[M],
	ask func(starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[M], error)) error {
	if at.address == "" {
		return &wire.Failure{Code: wire.Unavailable, Index: at.index, Reason: fmt.Sprintf(
			"the output of %s is on node %s, which is not in the cluster now: ask again when it is back", at.id, at.node)}
	}
	answers, err := ask(wire.Peer(s.peers, at.address))
	if err != nil {
		return notPassedOn(at, err)
	}
	defer answers.Close()
	for answers.Receive() {
		if err := to.Send(answers.Msg()); err != nil {
			return err
		}
	}
	return notPassedOn(at, answers.Err())
}

// notPassedOn says which peer does not answer, if that is why.
func notPassedOn(at *location, err error) error {
	failure := wire.FailureOf(err)
	if failure == nil {
		return nil
	}
	if failure.Code == wire.Unavailable && !failure.Decided {
		failure.Reason = fmt.Sprintf("the output of %s is on node %s, whose peer does not answer at %s: %s", at.id, at.node,
			at.address, failure.Reason)
	}
	return failure
}
