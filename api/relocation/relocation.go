// Package relocation copies what volumes hold, through any peer: to whoever wants to keep it, and to the node that is
// to have it from then on. That node's peer asks for it, the peer of the node that has it sends it.
package relocation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/replica/report"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/rules"
)

const (
	// chunkBytes is the size of a piece of an archive.
	chunkBytes = 128 << 10
	// tellEvery is the pause between two words on how far a copy is.
	tellEvery = time.Second
)

// Backend is what copies need of a peer.
type Backend interface {
	// Self names the peer's present life.
	Self() terms.PeerID
	// VolumeBytes returns how much each volume of a set on this node takes; it wraps os.ErrNotExist if there is none.
	VolumeBytes(ctx context.Context, set terms.VolumeSet) (map[string]int64, error)
	// SendVolumes writes what a set on this node holds, until ctx ends; it wraps os.ErrNotExist if there is none, and
	// storage.ErrInUse while something may write to it.
	SendVolumes(ctx context.Context, set terms.VolumeSet, to io.Writer) error
	// TakeVolumes makes a set on this node of what SendVolumes wrote on another, and asks that the node has it from then
	// on; it wraps os.ErrExist if there is such a set.
	TakeVolumes(move *command.MoveVolumes, from io.Reader) (report.Receipt, error)
}

// Mover answers for one peer.
type Mover struct {
	Backend Backend
	// State returns the value at the index or later.
	State func(ctx context.Context, least uint64) (*cluster.State, error)
	// Peers is how other peers are reached.
	Peers *http.Client
	// Log is told of each copy; nil for no log.
	Log *slog.Logger
}

// asked is what both requests are about.
type asked interface {
	GetMinIndex() uint64
	GetVolumes() string
}

// read reads which set a request is about, and the value to answer it by.
func (m *Mover) read(ctx context.Context, request asked) (*cluster.State, terms.VolumeSet, error) {
	set, ok := terms.ParseVolumeSet(request.GetVolumes())
	if !ok {
		return nil, set, &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf(
			"the request: volumes must be as in db.main[2]@17, is %q", request.GetVolumes())}
	}
	state, err := m.State(ctx, request.GetMinIndex())
	return state, set, err
}

// find returns volumes that no instance has.
func (m *Mover) find(ctx context.Context, request asked) (*cluster.State, storage.Volumes, error) {
	state, set, err := m.read(ctx, request)
	if err != nil {
		return nil, storage.Volumes{}, err
	}
	one, refusal := storage.Unused(state, set)
	if refusal.Reason != "" {
		return nil, one, wire.Refused(state.Index, refusal)
	}
	return state, one, nil
}

// ask returns the peer of a node, or why it cannot be asked.
func (m *Mover) ask(state *cluster.State, name terms.NodeName) (starlingv1connect.StarlingClient, error) {
	node := state.NodeOf(name)
	switch {
	case node == nil:
		return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index,
			Reason: fmt.Sprintf("there is no node %s: `starling node ls` lists them", name)}
	case node.Peer == "" || node.Offer == nil:
		return nil, &wire.Failure{Code: wire.Unavailable, Index: state.Index,
			Reason: fmt.Sprintf("node %s %s", name, view.Absent(state, name))}
	}
	return wire.Peer(m.Peers, node.Offer.Address), nil
}

// VolumeStats tells how much volumes take.
func (m *Mover) VolumeStats(ctx context.Context, request *starlingv1.VolumeStatsRequest) (
	*starlingv1.VolumeStatsResponse, error) {
	state, set, err := m.read(ctx, request)
	if err != nil {
		return nil, err
	}
	one, ok := storage.Find(state, set)
	switch {
	case !ok:
		return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index,
			Reason: fmt.Sprintf("there are no volumes %s", set)}
	case one.Node == m.Backend.Self().Node():
		return m.measure(ctx, state, &one)
	case request.GetDirect():
		return nil, elsewhere(state, &one)
	}
	peer, err := m.ask(state, one.Node)
	if err != nil {
		return nil, err
	}
	answer, err := peer.VolumeStats(ctx, &starlingv1.VolumeStatsRequest{MinIndex: uint64(state.Index),
		Volumes: request.GetVolumes(), Direct: true})
	if err != nil {
		return nil, wire.FailureOf(err)
	}
	return answer, nil
}

// measure reads what volumes on this node take.
func (m *Mover) measure(ctx context.Context, state *cluster.State, one *storage.Volumes) (
	*starlingv1.VolumeStatsResponse, error) {
	uses, err := m.Backend.VolumeBytes(ctx, one.Set)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // an instance that is to make them may not have begun
		return nil, m.failure(ctx, one.Set, err)
	}
	answer := &starlingv1.VolumeStatsResponse{Index: uint64(state.Index), Time: wire.Timestamp(state.Time),
		Volumes: view.Volumes(state, one)}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		answer.Uses = append(answer.Uses, &starlingv1.VolumeUse{Name: name, Bytes: uint64(uses[name])})
	}
	return answer, nil
}

// elsewhere says that the volumes are not where a peer was asked for them.
func elsewhere(state *cluster.State, one *storage.Volumes) error {
	return &wire.Failure{Code: wire.Conflict, Index: state.Index,
		Reason: fmt.Sprintf("node %s has the volumes %s now: try again", one.Node, one.Set)}
}

// ReadVolumes sends what volumes hold.
func (m *Mover) ReadVolumes(ctx context.Context, request *starlingv1.ReadVolumesRequest,
	stream *connect.ServerStream[starlingv1.ReadVolumesResponse]) error {
	state, one, err := m.find(ctx, request)
	switch {
	case err != nil:
		return err
	case request.GetOrder() != 0 && request.GetOrder() != uint64(one.Order):
		return &wire.Failure{Code: wire.Conflict, Index: state.Index,
			Reason: fmt.Sprintf("an instance has used the volumes %s since: try again", one.Set)}
	case one.Node == m.Backend.Self().Node():
		head := &starlingv1.ReadVolumesResponse{Index: uint64(state.Index), Node: string(one.Node)}
		if err := stream.Send(head); err != nil {
			return err
		}
		pieces := bufio.NewWriterSize(&wire.Pieces{Most: chunkBytes, Send: func(data []byte) error {
			return stream.Send(&starlingv1.ReadVolumesResponse{Data: data})
		}}, chunkBytes)
		if err := m.Backend.SendVolumes(ctx, one.Set, pieces); err != nil {
			return m.failure(ctx, one.Set, err)
		}
		return pieces.Flush()
	case request.GetDirect():
		return elsewhere(state, &one)
	}
	peer, err := m.ask(state, one.Node)
	if err != nil {
		return err
	}
	answers, err := peer.ReadVolumes(ctx, &starlingv1.ReadVolumesRequest{MinIndex: uint64(state.Index),
		Volumes: request.GetVolumes(), Order: request.GetOrder(), Direct: true})
	return passOn(answers, err, stream)
}

// passOn sends what another peer answers, or why it does not.
func passOn[M any](answers *connect.ServerStreamForClient[M], err error, to *connect.ServerStream[M]) error {
	if err == nil {
		err = wire.PassOn(answers, to)
	}
	if err != nil {
		return wire.FailureOf(err)
	}
	return nil
}

// failure says what is wrong with a copy that this node was to make.
func (m *Mover) failure(ctx context.Context, set terms.VolumeSet, err error) error {
	here, failure := m.Backend.Self().Node(), (*wire.Failure)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, report.ErrUnknown):
		return &wire.Failure{Code: wire.Unknown, Reason: fmt.Sprintf(
			"the volumes %s were copied, and it is not known whether node %s has them from now on: %s; see `starling volume ls`",
			set, here, err)}
	case errors.Is(err, storage.ErrInUse), errors.Is(err, os.ErrExist), errors.Is(err, os.ErrNotExist):
		return &wire.Failure{Code: wire.Conflict, Reason: fmt.Sprintf("node %s: %s: try again", here, err)}
	}
	return &wire.Failure{Code: wire.Unavailable, Reason: fmt.Sprintf("node %s: %s", here, err)}
}

// RelocateVolumes copies volumes to the node that is to have them.
func (m *Mover) RelocateVolumes(ctx context.Context, request *starlingv1.RelocateVolumesRequest,
	stream *connect.ServerStream[starlingv1.RelocateVolumesResponse]) error {
	state, one, err := m.find(ctx, request)
	if err != nil {
		return err
	}
	to := terms.NodeName(request.GetNode())
	peer, err := m.ask(state, to)
	switch {
	case err != nil:
		return err
	case one.Node == to:
		return stream.Send(&starlingv1.RelocateVolumesResponse{Index: uint64(state.Index), From: string(one.Node)})
	case state.Rules < rules.MovedVolumes:
		return &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: fmt.Sprintf(
			"volumes are moved since version %d of the rules, which are at version %d: raise them with `starling rules raise` "+
				"when the programs of all peers know it", rules.MovedVolumes, state.Rules)}
	case state.NodeOf(to).Drain.On:
		return &wire.Failure{Code: wire.Conflict, Index: state.Index, Reason: fmt.Sprintf(
			"node %s takes no instances, as it is drained: name another", to)}
	}
	by := door.CallerOf(ctx).String()
	if request.GetDirect() && !door.CallerOf(ctx).IsUser() {
		by = fmt.Sprintf("%s, by way of %s", request.GetBy(), by)
	}
	if to == m.Backend.Self().Node() {
		return m.fetch(ctx, state, &one, &fetch{by: by, requestID: request.GetRequestId(), to: stream})
	}
	answers, err := peer.RelocateVolumes(ctx, &starlingv1.RelocateVolumesRequest{MinIndex: uint64(state.Index),
		RequestId: request.GetRequestId(), Volumes: request.GetVolumes(), Node: request.GetNode(), Direct: true, By: by})
	return passOn(answers, err, stream)
}

// fetch is a copy on its way here.
type fetch struct {
	by, requestID string
	to            *connect.ServerStream[starlingv1.RelocateVolumesResponse]
	from          terms.NodeName
	answers       *connect.ServerStreamForClient[starlingv1.ReadVolumesResponse]
	rest          []byte
	bytes         uint64
	told          time.Time
}

// fetch copies volumes here.
func (m *Mover) fetch(ctx context.Context, state *cluster.State, one *storage.Volumes, f *fetch) error {
	peer, err := m.ask(state, one.Node)
	if err != nil {
		return err
	}
	f.from = one.Node
	f.answers, err = peer.ReadVolumes(ctx, &starlingv1.ReadVolumesRequest{MinIndex: uint64(state.Index),
		Volumes: one.Set.String(), Order: uint64(one.Order), Direct: true})
	if err != nil {
		return wire.FailureOf(err)
	}
	defer f.answers.Close()
	m.tell("volumes are copied here", one, f)
	receipt, err := m.Backend.TakeVolumes(
		&command.MoveVolumes{RequestID: f.requestID, Volumes: one.Set, Order: one.Order}, f)
	if err != nil {
		m.tell("volumes were not copied here", one, f, "error", err)
		return m.failure(ctx, one.Set, err)
	}
	if receipt.Refusal.Reason != "" {
		m.tell("volumes were not copied here", one, f, "error", receipt.Refusal.Reason)
		return wire.Refused(receipt.Index, receipt.Refusal)
	}
	m.tell("volumes were copied here", one, f)
	last := &starlingv1.RelocateVolumesResponse{Index: uint64(receipt.Index), From: string(f.from), Bytes: f.bytes}
	return f.to.Send(last)
}

func (m *Mover) tell(what string, one *storage.Volumes, f *fetch, more ...any) {
	if m.Log != nil {
		m.Log.Info(what, append([]any{"volumes", one.Set.String(), "from", string(one.Node), "by", f.by, "bytes", f.bytes},
			more...)...)
	}
}

// Read reads on, and tells who asked how far it is. What comes from elsewhere ends well only if all has come.
func (f *fetch) Read(data []byte) (int, error) {
	for len(f.rest) == 0 {
		if !f.answers.Receive() {
			if err := f.answers.Err(); err != nil {
				failure := wire.FailureOf(err)
				failure.Reason = fmt.Sprintf("node %s, which has the volumes: %s", f.from, failure.Reason)
				return 0, failure
			}
			return 0, io.EOF
		}
		f.rest = f.answers.Msg().GetData()
		f.bytes += uint64(len(f.rest))
		if time.Since(f.told) >= tellEvery {
			f.told = time.Now()
			if err := f.to.Send(&starlingv1.RelocateVolumesResponse{From: string(f.from), Bytes: f.bytes}); err != nil {
				return 0, err
			}
		}
	}
	n := copy(data, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
