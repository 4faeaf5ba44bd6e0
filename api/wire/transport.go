package wire

import (
	"context"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
)

// Peer returns the procedures of the peer at "host:port". It asks for no compression: peers are near, and output is
// read as fast as it is written.
func Peer(transport *http.Transport, address string, more ...connect.Interceptor) starlingv1connect.StarlingClient {
	return starlingv1connect.NewStarlingClient(&http.Client{Transport: transport}, "http://"+address,
		connect.WithAcceptCompression("gzip", nil, nil), connect.WithInterceptors(append(more, breaks{})...))
}

// AtHeader names the header that lets a request be about the past: an index, or a time as RFC 3339 has it.
const AtHeader = "Starling-At"

// At lets all requests be about a moment of the past.
type At string

// WrapUnary does so for procedures with one answer.
func (a At) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		request.Header().Set(AtHeader, string(a))
		return next(ctx, request)
	}
}

// WrapStreamingClient does so for procedures with a stream of answers.
func (a At) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set(AtHeader, string(a))
		return conn
	}
}

// WrapStreamingHandler does nothing: this is a client.
func (At) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// Transport returns the HTTP transport to peers: HTTP/2 without TLS, so that streams share a connection.
func Transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:       protocols,
		DialContext:     (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		IdleConnTimeout: 90 * time.Second,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
}
