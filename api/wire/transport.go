package wire

import (
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"starling/api/v1/starlingv1connect"
)

// Peer returns the procedures of the peer at "host:port". It asks for no compression: peers are near, and output is
// read as fast as it is written.
func Peer(transport *http.Transport, address string) starlingv1connect.StarlingClient {
	return starlingv1connect.NewStarlingClient(&http.Client{Transport: transport}, "http://"+address,
		connect.WithAcceptCompression("gzip", nil, nil), connect.WithInterceptors(breaks{}))
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
