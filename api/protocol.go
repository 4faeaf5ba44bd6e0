package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/terms"
)

func timestamp(t terms.Time) *timestamppb.Timestamp { return wire.Timestamp(t) }

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
	case errors.Is(context.Cause(ctx), door.ErrStopping):
		return &wire.Failure{Code: wire.Unavailable, Reason: "this peer is stopping: ask another, or again in a moment"}
	case errors.As(context.Cause(ctx), &failure):
		return failure
	case ctx.Err() != nil:
		return &wire.Failure{Code: wire.Canceled, Reason: "the request was canceled, or its time was up"}
	case errors.As(err, &received):
		return wire.FailureOf(err)
	}
	return &wire.Failure{Code: wire.Unavailable, Reason: err.Error()}
}

// withMedia says what to send to those who ask for a procedure in another way, as curl does unless told.
func withMedia(next http.Handler) http.Handler {
	all := starlingv1.File_v1_starling_proto.Services().Get(0).Methods()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		known := kind == "application/json" || kind == "application/proto" ||
			strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect+")
		switch {
		case all.ByName(protoreflect.Name(path.Base(r.URL.Path))) == nil:
			door.WriteFailure(w, http.StatusNotFound, &wire.Failure{Code: wire.NotFound,
				Reason: "there is no procedure " + r.URL.Path})
		case r.Method == http.MethodGet && r.URL.RawQuery == "":
			door.WriteFailure(w, http.StatusMethodNotAllowed, &wire.Failure{Code: wire.Invalid,
				Reason: r.URL.Path + " takes POST with JSON: curl --json BODY"})
		case r.Method == http.MethodPost && (err != nil || !known):
			door.WriteFailure(w, http.StatusUnsupportedMediaType, &wire.Failure{Code: wire.Invalid,
				Reason: "send JSON and say so: curl --json BODY, or the header Content-Type: application/json"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// withReaderTimeout lets go of a reader who takes nothing for too long, and would hold a stream for ever. Only writing
// has a deadline: a stream may be quiet for as long as it likes.
func withReaderTimeout(next http.Handler, readerTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timed := &timedWriter{ResponseWriter: w, control: http.NewResponseController(w), readerTimeout: readerTimeout}
		timed.within(0) // the connection may have carried another request
		next.ServeHTTP(timed, r)
		timed.within(readerTimeout) // for what is still to be flushed
	})
}

type timedWriter struct {
	http.ResponseWriter
	control       *http.ResponseController
	readerTimeout time.Duration
}

// within sets the time for what is written from now on, 0 for any. That it cannot be set only means that a stalled
// reader is kept.
func (p *timedWriter) within(readerTimeout time.Duration) {
	deadline := time.Time{}
	if readerTimeout > 0 {
		deadline = time.Now().Add(readerTimeout)
	}
	_ = p.control.SetWriteDeadline(deadline)
}

// Write gives every piece its own time.
func (p *timedWriter) Write(data []byte) (int, error) {
	p.within(p.readerTimeout)
	defer p.within(0)
	return p.ResponseWriter.Write(data)
}

// Flush sends what was written; an error shows again with the next Write.
func (p *timedWriter) Flush() { _ = p.FlushError() }

// FlushError is for http.ResponseController.
func (p *timedWriter) FlushError() error {
	p.within(p.readerTimeout)
	defer p.within(0)
	return p.control.Flush()
}

// Unwrap is for http.ResponseController.
func (p *timedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
