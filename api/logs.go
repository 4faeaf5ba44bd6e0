package api

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"connectrpc.com/connect"

	"starling/api/location"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/api/workdir"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/driver"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

type logStream = connect.ServerStream[starlingv1.LogsResponse]

// Logs reads the output of one allocation, and for one who follows an instance that of those after it.
func (s *server) Logs(ctx context.Context, request *starlingv1.LogsRequest, stream *logStream) error {
	options, err := logOptions(request)
	if err != nil {
		return err
	}
	at, err := s.locate(ctx, request)
	if err != nil {
		return err
	}
	err = s.logsOf(ctx, at, request, options, stream)
	for request.GetFollow() && request.GetAllocation() == "" {
		if at.Lost = s.isLost(ctx, at, err); err != nil && !at.Lost {
			return err
		}
		next, failure := s.locateNext(ctx, at)
		if next == nil {
			return cmp.Or(failure, err)
		}
		at = next
		options.TailBytes, request.TailBytes = -1, nil
		err = s.logsOf(ctx, at, request, options, stream)
		if failure := (*wire.Failure)(nil); errors.As(err, &failure) && failure.Code == wire.NotFound {
			err = nil // it never began
		}
	}
	return err
}

// isLost tells whether the node of an allocation, whose output broke off, has left the cluster.
func (s *server) isLost(ctx context.Context, at *location.Allocation, err error) bool {
	if failure := wire.FailureOf(err); failure == nil || failure.Code != wire.Unavailable {
		return false
	}
	state, err := s.backend.State(ctx, 0)
	return err == nil && !location.IsThere(state, at.Node)
}

// logsOf reads the output of an allocation: of this node from the driver, of another from the peer there.
func (s *server) logsOf(ctx context.Context, at *location.Allocation, request *starlingv1.LogsRequest,
	options driver.LogOptions, stream *logStream) error {
	if request.GetDirect() || at.Node == s.backend.Self().Node() {
		return s.ownLogs(ctx, at, options, stream)
	}
	return passOn(s, at, stream, func(
		peer starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[starlingv1.LogsResponse], error) {
		return peer.Logs(ctx, &starlingv1.LogsRequest{
			MinIndex: uint64(at.Index), Allocation: at.ID.String(), Stream: request.GetStream(), Follow: request.GetFollow(),
			TailBytes: request.TailBytes, Direct: true,
		})
	})
}

func logOptions(request *starlingv1.LogsRequest) (driver.LogOptions, error) {
	o := driver.LogOptions{Follow: request.GetFollow(), TailBytes: -1}
	switch request.GetStream() {
	case "", "stdout":
		o.Stream = driver.Stdout
	case "stderr":
		o.Stream = driver.Stderr
	default:
		return o, invalid("the request", terms.Problem{
			Path: "stream", Reason: fmt.Sprintf(`must be "stdout" or "stderr", is %q`, request.GetStream())})
	}
	if request.TailBytes != nil {
		o.TailBytes = int64(min(request.GetTailBytes(), 1<<62))
	}
	return o, nil
}

// locate finds the allocation that is meant. For one who follows it waits until the slot has one.
func (s *server) locate(ctx context.Context, request *starlingv1.LogsRequest) (*location.Allocation, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	if request.GetAllocation() != "" {
		id, ok := terms.ParseAllocationID(request.GetAllocation())
		if !ok {
			return nil, invalid("the request", terms.Problem{Path: "allocation", Reason: fmt.Sprintf(
				"must be as in web.server[2]#4711, is %q", request.GetAllocation())})
		}
		return s.locateAllocation(ctx, state, id, request.GetDirect())
	}
	for {
		r, err := slotOf(state, request)
		if err != nil && r.Job != 0 {
			return s.locateRemoved(ctx, state, r, err)
		}
		if err != nil {
			return nil, err
		}
		slot, _ := state.SlotAt(r)
		waits := slot.Phase == facts.Waiting && request.GetFollow()
		if slot.Order != 0 && !waits {
			return location.Of(state, r, slot), nil
		}
		if !waits {
			return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
				"%s has no output: it is %s and was never placed; `starling why %s` tells more", state.NameOf(r), slot.Phase,
				request.GetJob())}
		}
		if state, err = s.backend.State(ctx, state.Index+1); err != nil {
			return nil, err
		}
	}
}

// locateRemoved finds the last allocation of an instance that its task had before it was scaled down, in the entries
// that are remembered. If there is none the instance is missing, as the error says.
func (s *server) locateRemoved(ctx context.Context, state *cluster.State, r facts.SlotRef,
	missing error) (*location.Allocation, error) {
	name := state.NameOf(r)
	placed, err := s.placed(ctx, name, 1, state.Index)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for %s: %w", name, err)
	case len(placed) == 0:
		return nil, missing
	}
	return location.In(state, placed[len(placed)-1]), nil
}

// locateNext waits for the allocation of an instance that follows the last, and returns nil if there will be none. When
// the node of the last was lost and comes back, its output goes on there.
func (s *server) locateNext(ctx context.Context, last *location.Allocation) (*location.Allocation, error) {
	for index := last.Index; ; {
		state, err := s.backend.State(ctx, index)
		if err != nil {
			return nil, err
		}
		index = state.Index + 1
		r, ok := state.RefOf(last.ID.Slot)
		slot, _ := state.SlotAt(r)
		if ok && slot.Order <= last.ID.Order && !slot.Phase.Final() && !state.Job(r.Job).Status().Final() {
			if last.Lost && location.IsThere(state, last.Node) {
				return nil, &wire.Failure{Code: wire.Unavailable, Index: state.Index, Reason: fmt.Sprintf(
					"node %s, which has the output of %s, is back: ask again", last.Node, last.ID)}
			}
			continue
		}
		switch placed, err := s.placed(ctx, last.ID.Slot, last.ID.Order+1, state.Index); {
		case err != nil:
			return nil, fmt.Errorf("look for what follows %s: %w", last.ID, err)
		case len(placed) > 0:
			return location.In(state, placed[0]), nil
		case ok && slot.Order > last.ID.Order: // the entry that placed it is forgotten
			return location.Of(state, r, slot), nil
		}
		return nil, nil
	}
}

// locateAllocation finds the node of an allocation that may be over: the slot tells of its last one, the entry that
// ordered it, while it is remembered, of an earlier one. Who asks directly means this node.
func (s *server) locateAllocation(ctx context.Context, state *cluster.State, id terms.AllocationID,
	direct bool) (*location.Allocation, error) {
	if r, ok := state.RefOf(id.Slot); ok {
		if slot, _ := state.SlotAt(r); slot.Order == id.Order {
			return location.Of(state, r, slot), nil
		}
	}
	at := &location.Allocation{ID: id, Index: state.Index, Phase: facts.Stopped}
	if direct {
		at.Node = s.backend.Self().Node()
		return at, nil
	}
	placed, err := s.placed(ctx, id.Slot, id.Order, min(id.Order, state.Index))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read entry %d: %w", id.Order, err)
	case len(placed) == 0: // this node may still have it; if not, it says so
		at.Node = s.backend.Self().Node()
		return at, nil
	}
	return location.In(state, placed[0]), nil
}

// placed returns the effects that gave a slot its nodes, in the remembered entries from one index on to another.
func (s *server) placed(ctx context.Context, slot terms.SlotName, from, end terms.Index) (all []*report.Effect,
	err error) {
	err = s.remembered(ctx, from, end, func(entry *report.Folded) error {
		for i := range entry.Outcome.Effects {
			if e := &entry.Outcome.Effects[i]; e.Kind == report.Placed && e.Slot == slot {
				all = append(all, e)
			}
		}
		return nil
	})
	return all, err
}

// ownLogs sends what this node has.
func (s *server) ownLogs(ctx context.Context, at *location.Allocation, options driver.LogOptions,
	stream *logStream) error {
	reader, err := s.openLogs(ctx, at, options)
	if err != nil {
		return err
	}
	defer reader.Close()
	head := &starlingv1.LogsResponse{Index: uint64(at.Index), Allocation: at.ID.String(), Node: string(at.Node)}
	if err := stream.Send(head); err != nil {
		return err
	}
	chunk := make([]byte, chunkBytes)
	for {
		n, err := reader.Read(chunk)
		if n > 0 {
			if err := stream.Send(&starlingv1.LogsResponse{Index: uint64(at.Index), Data: chunk[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of %s: %w", at.ID, err)
		}
	}
}

// openLogs opens what this node has; of an allocation that was not started yet it waits for that, for one who follows.
func (s *server) openLogs(ctx context.Context, at *location.Allocation,
	options driver.LogOptions) (io.ReadCloser, error) {
	for {
		reader, err := s.backend.Logs(ctx, at.ID.String(), options)
		switch {
		case err == nil:
			return reader, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("open the output of %s: %w", at.ID, err)
		case at.Phase == facts.Assigned && options.Follow:
		case at.Phase == facts.Assigned:
			reason := fmt.Sprintf("%s has no output yet: node %s is starting it", at.ID, at.Node)
			if waits := s.backend.Status().Waits[at.ID]; waits != "" {
				reason += ", and waits for " + waits
			}
			return nil, &wire.Failure{Code: wire.NotFound, Index: at.Index, Reason: reason}
		default:
			return nil, &wire.Failure{Code: wire.NotFound, Index: at.Index, Reason: fmt.Sprintf(
				"node %s keeps no output of %s: it was dropped to save space, or there never was any", s.backend.Self().Node(),
				at.ID)}
		}
		state, err := s.backend.State(ctx, at.Index+1)
		if err != nil {
			return nil, err
		}
		at.Index, at.Phase = state.Index, facts.Stopped
		if r, ok := state.RefOf(at.ID.Slot); ok {
			if slot, _ := state.SlotAt(r); slot.Order == at.ID.Order {
				at.Phase = slot.Phase
			}
		}
	}
}

// Files sends what the working folder of an allocation holds, on this node or another.
func (s *server) Files(ctx context.Context, request *starlingv1.FilesRequest,
	stream *connect.ServerStream[starlingv1.FilesResponse]) error {
	at, err := s.locate(ctx, &starlingv1.LogsRequest{MinIndex: request.GetMinIndex(), Allocation: request.GetAllocation(),
		Job: request.GetJob(), Task: request.GetTask(), Slot: request.GetSlot(), Direct: request.GetDirect()})
	if err != nil {
		return err
	}
	if !request.GetDirect() && at.Node != s.backend.Self().Node() {
		return passOn(s, at, stream, func(
			peer starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[starlingv1.FilesResponse], error) {
			return peer.Files(ctx, &starlingv1.FilesRequest{MinIndex: uint64(at.Index), Allocation: at.ID.String(),
				Path: request.GetPath(), Direct: true})
		})
	}
	root, err := s.backend.Folder(at.ID.String())
	if err != nil {
		return &wire.Failure{Code: wire.NotFound, Index: at.Index, Reason: fmt.Sprintf(
			"node %s has no working folder of %s: %s", s.backend.Self().Node(), at.ID, err)}
	}
	defer root.Close()
	head := &starlingv1.FilesResponse{Index: uint64(at.Index), Allocation: at.ID.String(), Node: string(at.Node)}
	if err := stream.Send(head); err != nil {
		return err
	}
	return workdir.Send(root, request.GetPath(), stream.Send)
}

type outputStream = connect.ServerStream[starlingv1.OutputResponse]

// Output sends the output folder of an instance: for instances elsewhere that come after it what this node has, and for
// users what any node has.
func (s *server) Output(ctx context.Context, request *starlingv1.OutputRequest, stream *outputStream) error {
	if request.GetOutput() == "" {
		return s.outputOf(ctx, request, stream)
	}
	set, ok := terms.ParseOutputSet(request.GetOutput())
	if !ok {
		return invalid("the request", terms.Problem{Path: "output", Reason: fmt.Sprintf(
			"must be as in words.count[2]#4711@17, is %q", request.GetOutput())})
	}
	return s.ownOutput(ctx, set, stream)
}

// outputOf finds the output of an instance, and passes it on.
func (s *server) outputOf(ctx context.Context, request *starlingv1.OutputRequest, stream *outputStream) error {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return err
	}
	r, err := slotOf(state, request)
	if err != nil {
		return err
	}
	set, problem := reaction.OutputOf(state, r)
	if problem != "" {
		return &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: problem}
	}
	slot, _ := state.SlotAt(r)
	at := location.Of(state, r, slot)
	if at.Node == s.backend.Self().Node() {
		return s.ownOutput(ctx, set, stream)
	}
	return passOn(s, at, stream, func(
		peer starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[starlingv1.OutputResponse], error) {
		return peer.Output(ctx, &starlingv1.OutputRequest{Output: set.String()})
	})
}

// ownOutput sends what this node has.
func (s *server) ownOutput(ctx context.Context, set terms.OutputSet, stream *outputStream) error {
	pieces := bufio.NewWriterSize(&wire.Pieces{Most: chunkBytes, Send: func(data []byte) error {
		return stream.Send(&starlingv1.OutputResponse{Data: data})
	}}, chunkBytes)
	err := s.backend.SendOutput(ctx, set, pieces)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
			"node %s has no output of %s: it was deleted, or never was whole there", s.backend.Self().Node(), set.Allocation)}
	case err != nil:
		return fmt.Errorf("send the output of %s: %w", set.Allocation, err)
	}
	return pieces.Flush()
}

// slotNamed is a request that names a slot by job, task and number.
type slotNamed interface {
	GetJob() string
	GetTask() string
	GetSlot() uint32
}

// slotOf returns the slot that the request names.
func slotOf[R slotNamed](state *cluster.State, request R) (facts.SlotRef, error) {
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

// passOn sends what the peer on the allocation's node answers.
func passOn[M any](s *server, at *location.Allocation, to *connect.ServerStream[M],
	ask func(starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[M], error)) error {
	if at.Address == "" {
		return &wire.Failure{Code: wire.Unavailable, Index: at.Index, Reason: fmt.Sprintf(
			"the output of %s is on node %s, which %s", at.ID, at.Node, at.Absent)}
	}
	answers, err := ask(wire.Peer(s.peers, at.Address))
	if err != nil {
		return at.NotReached(err)
	}
	return at.NotReached(wire.PassOn(answers, to))
}
