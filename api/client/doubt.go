package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// Repeatable gives the writes of this client ids that follow from one: another client with the same id, which writes
// the same, asks what came of the first, and nothing is done twice. again tells that this is that other client. One
// that writes the same more than once is not to be repeatable.
func (c *Client) Repeatable(id string, again bool) { c.repeatable, c.again = id, again }

// requestID returns the id of a write: one that nobody else has, or one that follows from the client's and what is
// written.
func (c *Client) requestID(what ...string) string {
	if c.repeatable == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(c.repeatable + "\x00" + strings.Join(what, "\x00")))
	return base32.StdEncoding.EncodeToString(sum[:])[:len(rand.Text())]
}

// write is unary for what changes something. If a peer may have got the request, and no answer tells what came of it,
// the failure is wire.Unknown.
func write[Q, A any](
	ctx context.Context, c *Client, request *Q,
	method func(starlingv1connect.StarlingClient, context.Context, *Q) (*A, error),
) (*A, error) {
	var answer *A
	var doubt error
	err := c.retry(ctx, func(peer starlingv1connect.StarlingClient) (err error) {
		connected := atomic.Bool{}
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
		if answer, err = method(peer, traced, request); err != nil && mayCount(err, connected.Load()) {
			doubt = err
		}
		return err
	})
	switch {
	case err == nil:
		c.saw(answer)
		return answer, nil
	case doubt == nil && c.again:
		doubt = err
	}
	if failure := (*wire.Failure)(nil); doubt != nil && errors.As(err, &failure) && !settles(failure.Code) {
		err = c.unknown(doubt)
	}
	return nil, err
}

// mayCount tells whether what was asked may have been done, or may still be, although this error came back.
func mayCount(err error, connected bool) bool {
	failure, broken := wire.FailureOf(err), (*net.OpError)(nil)
	if failure.Decided {
		return failure.Code == wire.Unknown
	}
	return connected && !(errors.As(err, &broken) && broken.Op == "remote error") // TLS: the peer did not let it in
}

// settles tells whether an answer of this code is about the first time that a request was sent, too.
func settles(code wire.Code) bool {
	return code != wire.Unavailable && code != wire.Unknown && code != wire.Canceled && code != wire.Exhausted
}

// unknown returns the failure of a write of which nobody knows what comes of it.
func (c *Client) unknown(doubt error) error {
	failure := wire.FailureOf(doubt)
	if !failure.Decided {
		failure.Reason = fmt.Sprintf("the connection to the peer broke (%s): the request may have been executed", failure.Reason)
	}
	if c.repeatable != "" {
		failure.Reason += fmt.Sprintf("\nhint: the same command with --request-id %s repeats it, and nothing is done twice", c.repeatable)
	}
	return &wire.Failure{Code: wire.Unknown, Reason: failure.Reason, Index: failure.Index, Decided: failure.Decided}
}
