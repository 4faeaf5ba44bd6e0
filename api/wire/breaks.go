package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
)

// breaks tells a connection that broke from an answer. The protocol's library takes a reset, or a dial that had no
// answer in time, for something that the caller did, and others for something unknown; but the peer has died, and
// another try or another peer may do better.
type breaks struct{}

// WrapUnary does so for procedures with one answer.
func (breaks) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, request)
		return answer, broken(ctx, err)
	}
}

// WrapStreamingClient does so for procedures with a stream of answers.
func (breaks) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return breakable{next(ctx, spec), ctx}
	}
}

// WrapStreamingHandler does nothing: this is a client.
func (breaks) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// breakable is a stream whose connection may break.
type breakable struct {
	connect.StreamingClientConn
	ctx context.Context // of the call
}

// Send implements connect.StreamingClientConn.
func (b breakable) Send(message any) error { return broken(b.ctx, b.StreamingClientConn.Send(message)) }

// Receive implements connect.StreamingClientConn.
func (b breakable) Receive(message any) error {
	return broken(b.ctx, b.StreamingClientConn.Receive(message))
}

// broken returns an error that is neither a peer's answer nor due to the end of the caller's context as unavailable.
func broken(ctx context.Context, err error) error {
	deadline, hasDeadline := ctx.Deadline()
	over := ctx.Err() != nil || hasDeadline && !time.Now().Before(deadline)
	received := (*connect.Error)(nil)
	if over || connect.IsWireError(err) || !errors.As(err, &received) {
		return err
	}
	switch received.Code() {
	case connect.CodeUnknown, connect.CodeCanceled, connect.CodeDeadlineExceeded, connect.CodeInternal:
		return connect.NewError(connect.CodeUnavailable, received.Unwrap())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return connect.NewError(connect.CodeUnavailable, received.Unwrap())
	}
	return err
}

// ClosedReason says what a peer may mean that takes a connection and closes it without a word.
const ClosedReason = "something is there and closes the connection at once: the peer may have as many as it takes from " +
	"those who have shown no credentials yet, or be no peer"

// IsClosed tells whether the other end took the connection and closed it without a word.
func IsClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// Hangs tells whether a peer took the connection and then gave no sign of life, as one whose process or machine is
// stopped. The libraries tell so by the text alone.
func Hangs(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "http2: client connection lost") ||
		strings.Contains(err.Error(), "TLS handshake timeout"))
}
