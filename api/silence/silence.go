// Package silence lets an answer say how old it is, when the journal does not answer the peer that gives it: a header
// on the way out, and what a client has seen of it.
package silence

import (
	"context"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// Header names the header of an answer that may be old: when the journal answered last, as RFC 3339 has it.
const Header = "Starling-Journal-Silent-Since"

// Server puts the header on answers.
type Server struct {
	// Silence returns when the journal answered last, and why it does not now.
	Silence func() (since time.Time, why error)
}

func (s Server) mark(header interface{ Set(name, value string) }) {
	if since, why := s.Silence(); why != nil {
		header.Set(Header, since.UTC().Format(time.RFC3339))
	}
}

// WrapUnary does so for procedures with one answer.
func (s Server) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, request)
		if err == nil {
			s.mark(answer.Header())
		}
		return answer, err
	}
}

// WrapStreamingHandler does so for procedures with a stream of answers.
func (s Server) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		s.mark(conn.ResponseHeader())
		return next(ctx, conn)
	}
}

// WrapStreamingClient does nothing: this is a server.
func (s Server) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// Client notes what the last answer says. It is safe for concurrent use.
type Client struct {
	mutex sync.Mutex
	since time.Time
}

// Since returns when the journal answered last, by the last answer that came; a zero time if it answers.
func (c *Client) Since() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.since
}

func (c *Client) note(header interface{ Get(name string) string }) {
	since, _ := time.Parse(time.RFC3339, header.Get(Header)) // without the header the journal answers
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.since = since
}

// WrapUnary does so for procedures with one answer.
func (c *Client) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, request)
		if err == nil {
			c.note(answer.Header())
		}
		return answer, err
	}
}

// WrapStreamingHandler does nothing: this is a client.
func (c *Client) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient does so for procedures with a stream of answers.
func (c *Client) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return stream{next(ctx, spec), c}
	}
}

type stream struct {
	connect.StreamingClientConn
	client *Client
}

// Receive implements connect.StreamingClientConn.
func (s stream) Receive(message any) error {
	err := s.StreamingClientConn.Receive(message)
	if err == nil {
		s.client.note(s.ResponseHeader())
	}
	return err
}
