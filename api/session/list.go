package session

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
)

// ListSessions lists the sessions beside an instance to which one can attach: those of this node, or what the peer of
// another tells.
func (s *Server) ListSessions(ctx context.Context,
	request *starlingv1.ListSessionsRequest) (*starlingv1.ListSessionsResponse, error) {
	state, err := s.State(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	id, node, err := s.find(state, &starlingv1.ExecRequest{Allocation: request.GetAllocation(), Job: request.GetJob(),
		Task: request.GetTask(), Slot: request.GetSlot()})
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.ListSessionsResponse{Index: uint64(state.Index), Allocation: id.String(),
		Node: string(node.Name)}
	switch {
	case node.Name == s.Backend.Self().Node():
		for _, one := range s.Backend.Sessions(id) {
			answer.Sessions = append(answer.Sessions, &starlingv1.Session{Name: one.Name, Command: one.Command, By: one.By,
				Began: timestamppb.New(one.Began), Attached: one.Attached, Ended: one.Ended})
		}
		return answer, nil
	case request.GetDirect() || node.Offer == nil || node.Peer == "":
		return nil, &wire.Failure{Code: wire.Unavailable, Index: state.Index, Reason: fmt.Sprintf(
			"%s is on node %s, which %s", id, node.Name, view.Absent(state, node.Name))}
	}
	return wire.Peer(s.Peers, node.Offer.Address).ListSessions(ctx, &starlingv1.ListSessionsRequest{
		MinIndex: uint64(state.Index), Allocation: id.String(), Direct: true})
}
