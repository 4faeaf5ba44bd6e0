package api

import (
	"context"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

// Quorum tells which machines keep the journal.
func (s *server) Quorum(ctx context.Context, _ *starlingv1.QuorumRequest) (*starlingv1.QuorumResponse, error) {
	if s.options.Quorum == nil {
		return nil, errNoQuorum()
	}
	return s.options.Quorum.Quorum(ctx)
}

// ChangeQuorum adds, promotes or removes a machine.
func (s *server) ChangeQuorum(ctx context.Context,
	request *starlingv1.ChangeQuorumRequest) (*starlingv1.ChangeQuorumResponse, error) {
	if s.options.Quorum == nil {
		return nil, errNoQuorum()
	}
	if err := s.options.Quorum.ChangeQuorum(ctx, request.GetAction(), request.GetNode()); err != nil {
		return nil, err
	}
	return &starlingv1.ChangeQuorumResponse{}, nil
}

func errNoQuorum() error {
	return &wire.Failure{Code: wire.Conflict,
		Reason: "the journal of this cluster is not kept by its machines: it has no quorum to show or change"}
}
