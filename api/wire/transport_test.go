package wire_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/trust"
)

// serve answers at a listener until the test ends.
func serve(t *testing.T, listener net.Listener, answer http.HandlerFunc) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: answer, Protocols: protocols}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

// node is a machine of the cluster that answers as it likes; it returns its address.
func node(t *testing.T, keys *trust.Keys, protocols []string, answer http.HandlerFunc) string {
	t.Helper()
	config := keys.ServerTLS()
	config.NextProtos = protocols
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, answer)
	return listener.Addr().String()
}

// TestANodeThatLies has a node lead who asks it elsewhere: to a socket, where who asks is root, or to another node as
// who asks. None is asked.
func TestANodeThatLies(t *testing.T) {
	keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	count := func(http.ResponseWriter, *http.Request) { asked.Add(1) }
	serve(t, listener, count)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, plain, count)
	other := node(t, keys, []string{"h2"}, count)
	by := wire.Client(keys.Shows)
	defer by.CloseIdleConnections()
	socket := wire.URL(wire.UnixPrefix + path)
	for _, place := range []string{socket, wire.URL(other), "http://" + plain.Addr().String()} {
		lies := node(t, keys, []string{"h2"}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, place+"/starling.v1.Starling/KillJob", http.StatusTemporaryRedirect)
		})
		_, err := wire.Peer(by, lies).InstanceStats(t.Context(), &starlingv1.InstanceStatsRequest{Job: "web"})
		if err == nil || !strings.Contains(err.Error(), "which no peer does") {
			t.Errorf("led to %s: got %v", place, err)
		}
		if answer, err := by.Get(wire.URL(lies)); err == nil {
			answer.Body.Close()
			t.Errorf("led to %s: got %s", place, answer.Status)
		}
	}
	for _, place := range []string{socket, "http://" + plain.Addr().String(),
		"https" + strings.TrimPrefix(socket, "http")} {
		if answer, err := by.Get(place); err == nil {
			answer.Body.Close()
			t.Errorf("%s is asked as nodes are", place)
		}
	}
	if answer, err := wire.Client(nil).Get(wire.URL(other)); err == nil {
		answer.Body.Close()
		t.Error("a node is asked as sockets are")
	}
	if got := asked.Load(); got != 0 {
		t.Errorf("%d requests went elsewhere", got)
	}
	old := node(t, keys, nil, count)
	if _, err := by.Get(wire.URL(old)); err == nil || !strings.Contains(err.Error(), "HTTP/2") {
		t.Errorf("of one that speaks HTTP/1.1 there is %v", err)
	}
}

// TestLongAnswers has a node answer with more than there is memory for, and another send to one that does not read.
func TestLongAnswers(t *testing.T) {
	keys, err := trust.Create(filepath.Join(t.TempDir(), trust.Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	by := wire.Client(keys.Shows)
	defer by.CloseIdleConnections()
	large, err := proto.Marshal(&starlingv1.InfoResponse{Warnings: []string{strings.Repeat("x", 9<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	lies := node(t, keys, []string{"h2"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(large)
	})
	if _, err := wire.Peer(by, lies).Info(t.Context(), &starlingv1.InfoRequest{}); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	const most = 1 << 20
	sent := make(chan int)
	floods := node(t, keys, []string{"h2"}, func(w http.ResponseWriter, r *http.Request) {
		written, piece := 0, make([]byte, 32<<10)
		for to := http.NewResponseController(w); ; {
			_ = to.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			n, err := w.Write(piece)
			if written += n; err != nil || written > most {
				sent <- written
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, wire.URL(floods), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := by.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := <-sent; got > most {
		t.Errorf("%d bytes are kept for one who does not read", got)
	}
}
