package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/terms"
)

// Output sends the output folder of an instance, for instances elsewhere that come after it.
func (s *server) Output(
	ctx context.Context, request *starlingv1.OutputRequest, stream *connect.ServerStream[starlingv1.OutputResponse],
) error {
	set, ok := terms.ParseOutputSet(request.GetOutput())
	if !ok {
		return invalid("the request", terms.Problem{Path: "output", Reason: fmt.Sprintf(
			"must be as in words.count[2]#4711@17, is %q", request.GetOutput())})
	}
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
	stream *connect.ServerStream[starlingv1.OutputResponse]
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
