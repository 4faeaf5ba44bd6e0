package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/replica"
	"starling/terms"
)

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
	set, problem := replica.OutputOf(state, r)
	if problem != "" {
		return &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: problem}
	}
	slot, _ := state.SlotAt(r)
	at := locationOf(state, r, slot)
	if at.node == s.backend.Self().Node() {
		return s.ownOutput(ctx, set, stream)
	}
	return passOn(s, at, stream, func(
		peer starlingv1connect.StarlingClient) (*connect.ServerStreamForClient[starlingv1.OutputResponse], error) {
		return peer.Output(ctx, &starlingv1.OutputRequest{Output: set.String()})
	})
}

// ownOutput sends what this node has.
func (s *server) ownOutput(ctx context.Context, set terms.OutputSet, stream *outputStream) error {
	pieces := bufio.NewWriterSize(pieceWriter{stream}, chunkBytes)
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

// pieceWriter sends what is written in messages.
type pieceWriter struct {
	stream *outputStream
}

// Write sends one.
func (w pieceWriter) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		n := min(len(rest), chunkBytes)
		if err := w.stream.Send(&starlingv1.OutputResponse{Data: rest[:n]}); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(data), nil
}
