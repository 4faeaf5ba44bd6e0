package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// rounds is how often every peer is tried. With the pauses between, a peer that restarts is found again, and a user
// without a peer hears of it at once.
const (
	rounds     = 4
	pauseFirst = 50 * time.Millisecond
	pauseMost  = time.Second
)

// ErrUnreachable tells that no peer answered at all.
var ErrUnreachable = errors.New("no peer answers")

// unreachable is the failure of a call that no peer answered.
type unreachable struct {
	*wire.Failure
}

// Unwrap lets a caller find the failure and ErrUnreachable.
func (u unreachable) Unwrap() []error { return []error{u.Failure, ErrUnreachable} }

// retry calls the peers one after another, beginning with the one that answered last, as long as another try may help:
// it does not with a peer that hangs.
func (c *Client) retry(ctx context.Context, call func(starlingv1connect.StarlingClient) error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = pauseFirst, pauseMost
	var err error
	whys, hung := make([]string, len(c.peers)), make([]bool, len(c.peers))
	for round := range rounds {
		if !slices.Contains(hung, false) {
			break
		}
		if round > 0 {
			select {
			case <-ctx.Done():
				return c.failure(err, whys...)
			case <-time.After(pauses.NextBackOff()):
			}
		}
		for range c.peers {
			at := c.current.Load()
			if hung[at] {
				c.current.CompareAndSwap(at, (at+1)%uint32(len(c.peers)))
				continue
			}
			if err = call(c.peers[at]); err == nil || ctx.Err() != nil || !retriable(err) {
				return c.failure(err)
			}
			whys[at] = wire.FailureOf(err).Reason
			if hung[at] = wire.Hangs(err); hung[at] {
				whys[at] = "it accepts connections and does not answer"
			} else if wire.IsClosed(err) {
				whys[at] = wire.ClosedReason
			}
			c.current.CompareAndSwap(at, (at+1)%uint32(len(c.peers)))
		}
	}
	return c.failure(err, whys...)
}

// retriable tells whether another try, or another peer, may do better.
func retriable(err error) bool {
	code := wire.FailureOf(err).Code
	return code == wire.Unavailable || code == wire.Unknown || code == wire.Exhausted && wire.FailureOf(err).Decided
}

// broken returns what ended a stream of answers from the peer at an address, nil for its end.
func (c *Client) broken(err error, address string) error {
	failure := wire.FailureOf(err)
	switch {
	case failure == nil:
		return nil
	case failure.Code != wire.Unavailable || failure.Decided || connect.IsWireError(err):
		return failure
	}
	failure.Reason = fmt.Sprintf("the peer at %s answers no more: %s", address, failure.Reason)
	return unreachable{failure}
}

// failure returns what the error of a call tells, nil for none, and of several peers why each did not answer.
func (c *Client) failure(err error, whys ...string) error {
	failure := wire.FailureOf(err)
	if failure != nil && len(whys) > 0 {
		for i, why := range whys {
			if len(whys) > 1 {
				whys[i] = c.addresses[i] + ": " + why
			}
		}
		failure.Reason = strings.Join(whys, "; ")
	}
	switch {
	case failure == nil:
		return nil
	case failure.Code != wire.Unavailable || failure.Decided || connect.IsWireError(err):
		return failure
	}
	at := strings.Join(c.addresses, ", ")
	switch {
	case errors.Is(err, fs.ErrPermission):
		failure.Reason = fmt.Sprintf("this user may not connect to %s: ask an admin for credentials, and keep them with "+
			"`starling login` (%s)", at, failure.Reason)
	case wire.IsClosed(err):
		failure.Reason = fmt.Sprintf("the peer at %s closed the connection: try again (%s)", at, failure.Reason)
	default:
		failure.Reason = fmt.Sprintf(
			"no peer answers at %s: is `starling dev` or `starling agent` running? Use --address or STARLING_ADDRESS (%s)",
			at, failure.Reason)
	}
	return unreachable{failure}
}
