package wire

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
	"starling/trust"
)

// answerBytesMax bounds each message of a peer's answer. Peers send each other pieces of output and files, which are
// far smaller, and what the instances of one machine wait for and use.
const answerBytesMax = 8 << 20

// Peer returns the procedures of the peer at "host:port" or "unix:PATH", asked by a Client. It asks for no compression:
// peers are near, and output is read as fast as it is written. Messages of an answer may have 8 MiB, unless an option
// says otherwise.
func Peer(by *http.Client, address string, more ...connect.ClientOption) starlingv1connect.StarlingClient {
	options := append([]connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil),
		connect.WithReadMaxBytes(answerBytesMax)}, more...)
	return starlingv1connect.NewStarlingClient(by, URL(address),
		append(options, connect.WithInterceptors(breaks{}))...)
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

// URL returns the root of a peer's API, for a Client.
func URL(address string) string {
	if path, isSocket := strings.CutPrefix(address, UnixPrefix); isSocket {
		return "http://" + hex.EncodeToString([]byte(path)) + unixHost
	}
	return "https://" + address
}

// Client returns what asks peers, by HTTP/2, so that streams share a connection. With something to show it reaches
// nodes over mutual TLS, and nothing else; with nil the sockets of this machine, whose other ends know by themselves
// who calls, and nothing else. An answer that leads elsewhere is an error: it would have somebody else ask, or be
// asked, than was meant.
func Client(shows func() []trust.Shows) *http.Client {
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}
	t := &transport{isLocal: shows == nil, Transport: http.Transport{
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: 256 << 10,
		TLSHandshakeTimeout:    5 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 3 * time.Second, PingTimeout: 5 * time.Second,
			MaxReceiveBufferPerStream: streamBytesMax},
	}}
	if !t.isLocal {
		t.Protocols.SetHTTP2(true)
		t.TLSClientConfig = trust.ClientTLS(shows)
		verify := t.TLSClientConfig.VerifyConnection
		t.TLSClientConfig.VerifyConnection = func(connection tls.ConnectionState) error {
			if err := verify(connection); err != nil || connection.NegotiatedProtocol == http2 {
				return err
			}
			return errors.New("the other end does not speak HTTP/2")
		}
		t.DialContext = dialer.DialContext
		return &http.Client{Transport: t}
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		path, err := hex.DecodeString(strings.TrimSuffix(host, unixHost))
		if err != nil {
			return nil, fmt.Errorf("%q stands for no socket: %w", host, err)
		}
		return dialer.DialContext(ctx, "unix", string(path))
	}
	return &http.Client{Transport: t}
}

const (
	// http2 is the name of HTTP/2 in TLS.
	http2 = "h2"
	// streamBytesMax is how much of an answer is held for one who does not read it.
	streamBytesMax = 256 << 10
)

// transport is that of a Client.
type transport struct {
	http.Transport
	isLocal bool
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	isSocket := request.URL.Scheme == "http" && strings.HasSuffix(request.URL.Hostname(), unixHost)
	if isSocket != t.isLocal || !isSocket && request.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not asked from here", request.URL.Redacted())
	}
	answer, err := t.Transport.RoundTrip(request)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		answer.Body.Close()
		return nil, fmt.Errorf("%s answers %q, which no peer does", request.URL.Host, answer.Status)
	}
	return answer, err
}
