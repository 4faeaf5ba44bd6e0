package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms/access"
	"starling/trust"
)

// BenchmarkRequests asks one peer what it is: in plain HTTP/2, which no peer speaks over TCP, over the socket of its
// machine, and with mutual TLS; "first" opens a connection for each request, as each command does.
func BenchmarkRequests(b *testing.B) {
	keys := newKeys(b)
	shows := shownBy(userOf(b, keys, trust.Identity{Name: "alice", Role: access.Admin}, time.Hour))
	log := slog.New(slog.DiscardHandler)
	a, _ := pair()
	handler := NewServer(a, Options{Log: log, Shows: keys.Shows})
	who := trust.Identity{Kind: access.OfUser, Name: "alice", Role: access.Admin}
	plain := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r.WithContext(door.WithCaller(r.Context(), who)))
		})}
	plain.Protocols.SetUnencryptedHTTP2(true)
	unencrypted, encrypted := listenTCP(b), listenTCP(b)
	go func() { _ = plain.Serve(unencrypted) }() // ends with Close
	b.Cleanup(func() { plain.Close() })
	socket := filepath.Join(b.TempDir(), "api")
	opened, err := door.Open(door.Config{Keys: keys, Listener: encrypted, Socket: socket, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	opened.Answer(handler, nil)
	b.Cleanup(func() { opened.Close() })
	inClear := func() *http.Client {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: &http.Transport{Protocols: protocols}}
	}
	for _, way := range []struct {
		name, url string
		client    func() *http.Client
	}{
		{"plain", "http://" + unencrypted.Addr().String(), inClear},
		{"socket", wire.URL(wire.UnixPrefix + socket), func() *http.Client { return wire.Client(nil) }},
		{"tls", wire.URL(encrypted.Addr().String()), func() *http.Client {
			return wire.Client(func() []trust.Shows { return []trust.Shows{shows} })
		}},
	} {
		asking := func(b *testing.B) (ask, end func()) {
			by := way.client()
			peer := starlingv1connect.NewStarlingClient(by, way.url)
			return func() {
				if _, err := peer.Info(context.Background(), &starlingv1.InfoRequest{}); err != nil {
					b.Fatal(err)
				}
			}, by.CloseIdleConnections
		}
		b.Run(way.name+"/next", func(b *testing.B) {
			ask, end := asking(b)
			defer end()
			for b.Loop() {
				ask()
			}
		})
		b.Run(way.name+"/first", func(b *testing.B) {
			for b.Loop() {
				ask, end := asking(b)
				ask()
				end()
			}
		})
	}
}

func listenTCP(b *testing.B) net.Listener {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return listener
}
