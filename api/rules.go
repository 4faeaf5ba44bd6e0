package api

import (
	"context"

	starlingv1 "starling/api/v1"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// Rules tells the version of the rules in force, and up to which each member's program knows them.
func (s *server) Rules(ctx context.Context, request *starlingv1.RulesRequest) (*starlingv1.RulesResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.RulesResponse{Index: uint64(state.Index), Rules: uint32(state.Rules),
		Newest: uint32(s.options.Rules)}
	state.EachMember(func(p terms.PeerID) bool {
		one := &starlingv1.RulesOfMember{Peer: string(p)}
		if offer := state.NodeOf(p.Node()).Offer; offer != nil {
			one.Newest = uint32(offer.Rules)
		}
		answer.Members = append(answer.Members, one)
		return true
	})
	return answer, nil
}

// RaiseRules raises the rules by one.
func (s *server) RaiseRules(ctx context.Context,
	request *starlingv1.RaiseRulesRequest) (*starlingv1.RaiseRulesResponse, error) {
	if request.GetVersion() == 0 {
		return nil, invalid("the request", terms.Problem{Path: "version", Reason: "must be the one to raise the rules to"})
	}
	receipt, err := s.submit(ctx, &command.RaiseRules{Version: rules.Number(request.GetVersion())})
	if err != nil {
		return nil, err
	}
	return &starlingv1.RaiseRulesResponse{Index: uint64(receipt.Index)}, nil
}
