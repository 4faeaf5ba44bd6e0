package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// ListPeers lists one page of the nodes. The token of a page is the number of its first node.
func (s *server) ListPeers(ctx context.Context,
	request *starlingv1.ListPeersRequest) (*starlingv1.ListPeersResponse, error) {
	size, err := pageSize(request.GetPageSize(), pageSizeMax)
	if err != nil {
		return nil, err
	}
	first := 0
	if token := request.GetPageToken(); token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 {
			return nil, badToken(token)
		}
	}
	state, flock, err := s.nodesAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.ListPeersResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Self: string(s.backend.Self()),
	}
	for n := first; n < state.Nodes(); n++ {
		if len(answer.Peers) == size {
			answer.NextPageToken = strconv.Itoa(n)
			break
		}
		node := state.Node(facts.NodeIndex(n))
		if len(node.Held) == 0 && state.Registry().IsGone(node.Name) {
			continue
		}
		m := flock.peer(state, node)
		if request.GetJobs() > 0 {
			view.OnNode(state, node, m, int(min(request.GetJobs(), jobsOnNodeMax)))
		}
		answer.Peers = append(answer.Peers, m)
	}
	return answer, nil
}

// jobsOnNodeMax bounds the jobs that are told of a node.
const jobsOnNodeMax = 100

// pulsesMax is how long who asks for pulses waits for a journal that does not answer.
const pulsesMax = time.Second

// pulses returns what the peers publish; of the past it is not known, nor while the journal does not answer.
func (s *server) pulses(ctx context.Context) (all []report.PulseView, known bool) {
	if _, silent := s.backend.Silence(); silent != nil || isPast(ctx) {
		return nil, false
	}
	short, cancel := context.WithTimeout(ctx, pulsesMax)
	defer cancel()
	all, err := s.backend.Pulses(short)
	if err != nil {
		_, _ = s.backend.Head(ctx) // if that fails, the answer says how old it is
	}
	return all, err == nil
}

// nodesAt returns the value and what the peers publish.
func (s *server) nodesAt(ctx context.Context, least uint64) (*cluster.State, *flock, error) {
	pulses, known := s.pulses(ctx)
	state, err := s.stateAt(ctx, least)
	if err != nil {
		return nil, nil, err
	}
	if !known {
		return state, &flock{past: true, joining: joining(state)}, nil
	}
	flock, err := s.flock(ctx, state, pulses)
	return state, flock, err
}

// joining returns the attempts to join, by node.
func joining(state *cluster.State) map[terms.NodeName]terms.PeerID {
	all := map[terms.NodeName]terms.PeerID{}
	state.EachAttempt(func(p terms.PeerID, _ membership.Attempt) bool {
		all[p.Node()] = p
		return true
	})
	return all
}

// flock is what the peers publish, and what this peer knows to compare it with.
type flock struct {
	pulses map[terms.PeerID]report.PulseView
	// joining are the attempts by node.
	joining map[terms.NodeName]terms.PeerID
	// digests are this peer's own, at the indexes that pulses tell, as far as it remembers.
	digests map[terms.Index]uint64
	// furthest is the highest index that anybody has folded.
	furthest terms.Index
	// past tells that nothing is known but the value: a member lived as long as it was one.
	past bool
}

func (s *server) flock(ctx context.Context, state *cluster.State, pulses []report.PulseView) (*flock, error) {
	f := &flock{
		pulses: map[terms.PeerID]report.PulseView{}, joining: joining(state),
		digests: map[terms.Index]uint64{state.Index: state.Digest()}, furthest: state.Index,
	}
	oldest := state.Index
	for _, pulse := range pulses {
		f.pulses[pulse.Peer] = pulse
		f.furthest = max(f.furthest, pulse.Index)
		if pulse.Index > 0 {
			oldest = min(oldest, pulse.Index)
		}
	}
	// The pulses tell of a moment ago, so the digests to compare with are those of entries that are remembered.
	err := s.remembered(ctx, oldest, state.Index, func(entry *report.Folded) error {
		f.digests[entry.Index] = entry.Digest
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the digests from index %d on: %w", oldest, err)
	}
	return f, nil
}

// peer tells of the member on the node, or else of the joiner, or else of the last that left.
func (f *flock) peer(state *cluster.State, node *cluster.Node) *starlingv1.Peer {
	p := node.Peer
	m := &starlingv1.Peer{Node: string(node.Name), Allocations: uint32(len(node.Held)),
		Draining: node.Drain.On, DrainDeadline: timestamp(node.Drain.Deadline)}
	joiner, joins := f.joining[node.Name]
	switch {
	case p != "":
		m.State, m.Watches, m.WatchedBy = "member", string(state.Watched(p)), string(state.Watcher(p))
	case joins:
		p = joiner
		attempt, _ := state.Attempt(p)
		m.State, m.Detail = "joining", fmt.Sprintf("attempt %d is %s", attempt.Number, attempt.Phase)
		if attempt.Observer != "" {
			m.Detail += " by " + string(attempt.Observer)
		}
	default:
		p = terms.NewPeerID(node.Name, node.Departed)
		m.State = view.Departed(state, node.Name)
	}
	m.Peer = string(p)
	if o := node.Offer; o != nil {
		m.Capacity = wire.Resources(o.Capacity)
		m.AwayUntil = timestamp(o.AwayUntil)
		m.Free, m.Kept = view.Room(state, node.Index)
		m.Devices, m.Attributes, m.Address = wire.Devices(o.Devices), wire.Variables(o.Attributes), o.Address
		m.Held = view.Held(state, node)
	}
	m.Alive = f.past && m.State == "member"
	pulse, ok := f.pulses[p]
	if !ok {
		return m
	}
	m.Alive, m.JournalIndex, m.Lag = pulse.Alive, uint64(pulse.Index), uint64(f.furthest-pulse.Index)
	m.Digest = wire.Digest(pulse.Digest)
	if pulse.OfferRefusal != "" {
		m.Detail = "it gives nothing, because its offer is refused: " + pulse.OfferRefusal
	}
	if m.Address == "" {
		m.Address = pulse.Address
	}
	if own, known := f.digests[pulse.Index]; known {
		m.DigestAgrees = new(own == pulse.Digest)
	}
	return m
}

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
	return &starlingv1.RaiseRulesResponse{Index: uint64(receipt.Index)}, err
}

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
