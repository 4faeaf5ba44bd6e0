package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"starling/api/wire"
)

// failures turns every error of a procedure into one that the protocol carries.
type failures struct{}

// WrapUnary does so for procedures with one answer.
func (failures) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, request)
		return answer, wireError(ctx, err)
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers.
func (failures) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return wireError(ctx, next(ctx, conn))
	}
}

// WrapStreamingClient does nothing: this is a server.
func (failures) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func wireError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return failureOf(ctx, err).Wire()
}

// failureOf says what an error of a request or of the backend means to who asked.
func failureOf(ctx context.Context, err error) *wire.Failure {
	failure := (*wire.Failure)(nil)
	received := (*connect.Error)(nil)
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(context.Cause(ctx), errStopping):
		return &wire.Failure{Code: wire.Unavailable, Reason: "this peer is stopping: ask another, or again in a moment"}
	case ctx.Err() != nil:
		return &wire.Failure{Code: wire.Canceled, Reason: "the request was canceled, or its time was up"}
	case errors.As(err, &received):
		return wire.FailureOf(err)
	}
	return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
}

// writeFailure answers a plain HTTP request, in the form in which the procedures' errors are written as JSON.
func writeFailure(w http.ResponseWriter, status int, failure *wire.Failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failureJSON(failure)) // it fails only if who asked has gone
}

func failureJSON(failure *wire.Failure) any {
	return struct {
		Code    wire.Code `json:"code"`
		Message string    `json:"message"`
	}{failure.Code, failure.Reason}
}
