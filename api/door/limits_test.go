package door

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/api/wire"
	"starling/terms/access"
)

// TestUnfinishedBodiesEnd sends a part of a body, and no more.
func TestUnfinishedBodiesEnd(t *testing.T) {
	ended := make(chan error, 1)
	handler := withBody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}), 50*time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running := &http.Server{Handler: handler}
	go running.Serve(listener)
	defer running.Close()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	io.WriteString(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v", err)
	}
}

// TestConnectionsAreBounded opens more connections than a client may have, and closes one.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	bounded := newHeld(listener, 2, nil, slog.New(slog.NewTextHandler(&told, nil)))
	defer bounded.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			connection, err := bounded.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- connection
		}
	}()
	dial := func() net.Conn {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	dial()
	dial()
	first := <-accepted
	<-accepted
	for range 2 {
		if _, err := dial().Read(make([]byte, 1)); err == nil {
			t.Error("a connection beyond the bound is answered")
		}
	}
	first.Close()
	dial()
	if <-accepted == nil {
		t.Error("who has closed a connection gets no other")
	}
	if log := told.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "client=127.0.0.1 has=2") {
		t.Errorf("the log tells %q", log)
	}
}

func TestSocketAdmitsThisUser(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	d, err := Open(Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := CallerOf(r.Context())
		if who.Kind != access.OfLocal || who.Role != access.Admin || who.Name == "" {
			t.Errorf("got %+v", who)
		}
	}), nil)
	transport := wire.Transport(nil)
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(wire.URL(wire.UnixPrefix + socket))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if err := Check(context.Background(), PathUser); err == nil {
		t.Error("a request of nobody is let through")
	}
}
