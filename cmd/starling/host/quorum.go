package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"starling/api"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/journal/etcd/quorum"
)

// NewQuorum returns a machine's part in the quorum as its API shows and changes it.
func NewQuorum(node *quorum.Node) api.Quorum { return quorumBackend{node} }

type quorumBackend struct{ node *quorum.Node }

// Quorum implements api.Quorum.
func (q quorumBackend) Quorum(ctx context.Context) (*starlingv1.QuorumResponse, error) {
	r := q.node.Report(ctx)
	answer := &starlingv1.QuorumResponse{Endpoints: r.Endpoints, Next: strings.TrimSpace(r.Next.Why)}
	if r.Next.Action != quorum.Wait {
		answer.Next = fmt.Sprintf("%s %s: %s", r.Next.Action, r.Next.Node, r.Next.Why)
	}
	if r.Err != nil {
		answer.Next, answer.Problem = "", r.Err.Error()
	}
	for _, m := range r.View.Members {
		answer.Members = append(answer.Members, memberOf(&m, &r))
	}
	for _, m := range r.View.Machines {
		isMember := slices.ContainsFunc(r.View.Members, func(o quorum.Member) bool {
			return o.Machine != nil && o.Machine.Node == m.Node
		})
		if !isMember && m.Peer != "" {
			answer.Spare = append(answer.Spare, &starlingv1.QuorumMachine{Node: m.Node, Zone: m.Zone,
				Removed: slices.Contains(r.View.Barred, m.Node)})
		}
	}
	return answer, nil
}

func memberOf(m *quorum.Member, r *quorum.Report) *starlingv1.QuorumMember {
	one := &starlingv1.QuorumMember{Node: m.Node, Id: fmt.Sprintf("%016x", m.ID), State: "voter",
		ClientUrl: m.Client, PeerUrl: m.Peer}
	if m.Node == m.Client { // of a member that is known by its address alone nothing else is
		one.Id = ""
	}
	_, answers := r.Files[m.ID]
	switch {
	case r.Err != nil && !answers:
		one.State = "no answer"
	case r.Err != nil: // who is there and who leads is not known
	case m.Machine == nil || !m.Learner && m.Machine.Member != m.ID: // it is there without what the member held
		one.State = "away"
	case m.Learner:
		one.State = "learner"
	case m.ID == r.View.Leader:
		one.State = "leader"
	}
	if m.Machine != nil {
		one.Zone = m.Machine.Zone
	} else if !m.Away.IsZero() {
		one.AwaySince = timestamppb.New(m.Away)
	}
	file := r.Files[m.ID]
	one.FileBytes, one.UsedBytes, one.QuotaBytes = uint64(file.Bytes), uint64(file.Used), uint64(file.Quota)
	return one
}

// ChangeQuorum implements api.Quorum.
func (q quorumBackend) ChangeQuorum(ctx context.Context, action, node string) error {
	err := q.node.Change(ctx, quorum.Action(action), node)
	var refusal quorum.Refusal
	if errors.As(err, &refusal) {
		return &wire.Failure{Code: wire.Conflict, Reason: string(refusal), Decided: true}
	}
	if err != nil {
		return &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf("%s node %s: %v", action, node, err), Decided: true}
	}
	return nil
}
