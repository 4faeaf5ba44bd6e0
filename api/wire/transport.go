package wire

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
	"starling/trust"
)

// Peer returns the procedures of the peer at "host:port" or "unix:PATH". It asks for no compression: peers are near,
// and output is read as fast as it is written.
func Peer(transport *http.Transport, address string, more ...connect.Interceptor) starlingv1connect.StarlingClient {
	return starlingv1connect.NewStarlingClient(&http.Client{Transport: transport}, URL(address),
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

// unixHost ends the names of hosts that stand for sockets; the rest is the path.
const unixHost = ".unix"

// URL returns the root of a peer's API, for a client with a Transport.
func URL(address string) string {
	if path, isSocket := strings.CutPrefix(address, UnixPrefix); isSocket {
		return "http://" + hex.EncodeToString([]byte(path)) + unixHost
	}
	return "https://" + address
}

// Transport returns the HTTP transport to peers: HTTP/2, so that streams share a connection, over mutual TLS or, on
// this machine, a socket whose other end knows by itself who calls.
func Transport(shows func() []trust.Shows) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: trust.ClientTLS(shows),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			name, isSocket := strings.CutSuffix(host, unixHost)
			if err != nil || !isSocket {
				return dialer.DialContext(ctx, network, address)
			}
			path, err := hex.DecodeString(name)
			if err != nil {
				return nil, fmt.Errorf("%q stands for no socket: %w", host, err)
			}
			return dialer.DialContext(ctx, "unix", string(path))
		},
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 3 * time.Second, PingTimeout: 5 * time.Second},
	}
}
