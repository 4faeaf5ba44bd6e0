package client

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"starling/api/wire"
)

// Forwards returns what sends requests of another program to the peer that answered last, as that one would be asked by
// this client, and to another if that cannot be reached. Path, query, headers and body are the request's. A body that
// has no GetBody is sent once.
func (c *Client) Forwards() http.RoundTripper { return forwards(c.forward) }

// forwards is a function as http.RoundTripper.
type forwards func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f forwards) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (c *Client) forward(request *http.Request) (*http.Response, error) {
	var err error
	for range c.addresses {
		at := c.current.Load()
		var sent *http.Request
		if sent, err = c.readdressed(request, c.addresses[at]); err != nil {
			return nil, err
		}
		var answer *http.Response
		if answer, err = c.by(c.addresses[at]).Transport.RoundTrip(sent); err == nil {
			return answer, nil
		}
		if request.Context().Err() != nil {
			return nil, err
		}
		c.current.CompareAndSwap(at, (at+1)%uint32(len(c.addresses)))
		broken := (*net.OpError)(nil)
		unsent := errors.As(err, &broken) && broken.Op == "dial"
		if !unsent || request.Body != nil && request.Body != http.NoBody && request.GetBody == nil {
			return nil, err
		}
	}
	return nil, err
}

// readdressed returns the request as one to a peer.
func (c *Client) readdressed(request *http.Request, address string) (*http.Request, error) {
	root, err := url.Parse(wire.URL(address))
	if err != nil {
		return nil, err
	}
	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = root.Scheme, root.Host, ""
	if request.GetBody != nil {
		var body io.ReadCloser
		if body, err = request.GetBody(); err != nil {
			return nil, err
		}
		sent.Body = body
	}
	return sent, nil
}
