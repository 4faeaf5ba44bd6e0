package door

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/api/inflight"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/journal/connlimit"
	"starling/terms/access"
	"starling/trust"
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

// TestAUserHasItsPlaces opens more connections than one user may have, and closes one.
func TestAUserHasItsPlaces(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	d, err := Open(Config{Socket: socket, Limits: connlimit.Limits{Known: 4, Strangers: 4, OfAddress: 4}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	ask := func(by *http.Client) (status int, told string) {
		answer, err := by.Get(wire.URL(wire.UnixPrefix + socket))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	var all []*http.Client
	for range 3 {
		all = append(all, wire.Client(nil))
		defer all[len(all)-1].CloseIdleConnections()
	}
	for _, by := range all[:2] {
		if status, told := ask(by); status != http.StatusOK {
			t.Fatalf("got %d: %s", status, told)
		}
	}
	if status, told := ask(all[2]); status != http.StatusTooManyRequests || !strings.Contains(told, "has 2 at this peer") {
		t.Errorf("a third connection gets %d: %s", status, told)
	}
	all[0].CloseIdleConnections()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-again.C {
		status, told := ask(all[2])
		if status == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("who has closed a connection gets no other: %s", told)
		}
	}
}

// held is a door behind which requests stay open until they are released, and the bodies of others are read. All who
// call count together, and have two requests and a MiB.
func held(t *testing.T, shares func(*trust.Identity, string) []inflight.Share) (address string, release func()) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	d, err := Open(Config{Socket: socket, Requests: shares})
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	t.Cleanup(func() { d.Close() })
	d.Answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-released:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).EnableFullDuplex()
		for piece := make([]byte, 1<<10); ; {
			n, err := r.Body.Read(piece)
			if err != nil {
				fmt.Fprint(w, err)
				return
			}
			w.Write(piece[:n])
			_ = http.NewResponseController(w).Flush()
		}
	}), nil)
	return wire.UnixPrefix + socket, func() { close(released) }
}

func two(*trust.Identity, string) []inflight.Share {
	return []inflight.Share{{Key: "user vic", Requests: 2, Bytes: 1 << 20}}
}

// ask sends a request; what it answers is closed when the test ends.
func ask(t *testing.T, by *http.Client, method, url string, body io.Reader) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := by.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// isExhausted looks at how a procedure is refused.
func isExhausted(t *testing.T, err error, want string) {
	t.Helper()
	failure := wire.FailureOf(err)
	if failure == nil || failure.Code != wire.Exhausted || failure.Reason != want || !failure.Decided {
		t.Errorf("got %+v", failure)
	}
}

// TestACallerHasSoManyRequests opens as many on one connection as a caller may have, and asks for more in each form.
func TestACallerHasSoManyRequests(t *testing.T) {
	address, release := held(t, two)
	by := wire.Client(nil)
	defer by.CloseIdleConnections()
	first := ask(t, by, "GET", wire.URL(address)+"/hold", nil)
	ask(t, by, "GET", wire.URL(address)+"/hold", nil)
	const want = "too many requests of user vic are open at this peer: it answers 2 at a time; close some, or wait"
	refused := ask(t, by, "GET", wire.URL(address)+PathEvents, nil)
	if told, err := io.ReadAll(refused.Body); refused.StatusCode != http.StatusTooManyRequests || err != nil ||
		!strings.Contains(string(told), want) || !strings.Contains(string(told), `"exhausted"`) {
		t.Errorf("an HTTP client gets %d %s %v", refused.StatusCode, told, err)
	}
	peer := wire.Peer(by, address)
	_, err := peer.Info(t.Context(), &starlingv1.InfoRequest{})
	isExhausted(t, err, want)
	stream, err := peer.Watch(t.Context(), &starlingv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for stream.Receive() {
		t.Error("a stream that is refused has an answer")
	}
	isExhausted(t, stream.Err(), want)
	release()
	if _, err := io.ReadAll(first.Body); err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-again.C {
		if status := ask(t, by, "GET", wire.URL(address)+"/hold", nil).StatusCode; status == http.StatusOK {
			return
		} else if time.Now().After(end) {
			t.Fatalf("after the requests have ended, another gets %d", status)
		}
	}
}

// TestBodiesHaveSoManyBytes withholds the end of a body, and sends another.
func TestBodiesHaveSoManyBytes(t *testing.T) {
	address, _ := held(t, two)
	by := wire.Client(nil)
	defer by.CloseIdleConnections()
	withheld, send := io.Pipe()
	defer send.Close()
	first := ask(t, by, "POST", wire.URL(address)+"/read",
		io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), withheld))
	if n, err := io.CopyN(io.Discard, first.Body, 1<<20); err != nil {
		t.Fatalf("%d bytes have come: %v", n, err)
	}
	const want = "too many requests of user vic are open at this peer: it takes 1 MiB at a time; send less, or wait"
	second := ask(t, by, "POST", wire.URL(address)+"/read", strings.NewReader("x"))
	if told, err := io.ReadAll(second.Body); err != nil || !strings.Contains(string(told), want) {
		t.Errorf("a second body gets %q %v", told, err)
	}
	second = ask(t, by, "POST", wire.URL(address)+PathWhoAmI, strings.NewReader("{}"))
	if told, err := io.ReadAll(second.Body); second.StatusCode != http.StatusTooManyRequests || err != nil ||
		!strings.Contains(string(told), want) {
		t.Errorf("a request about identities gets %d %q %v", second.StatusCode, told, err)
	}
}

// TestAConnectionHasSoManyStreams holds one request more than a connection has streams: the client dials again.
func TestAConnectionHasSoManyStreams(t *testing.T) {
	address, release := held(t, nil)
	defer release()
	by := wire.Client(nil)
	defer by.CloseIdleConnections()
	used := map[net.Conn]bool{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { used[got.Conn] = true }})
	for range streamsMax + 1 {
		request, err := http.NewRequestWithContext(ctx, "GET", wire.URL(address)+"/hold", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := by.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	if len(used) != 2 {
		t.Errorf("%d requests have %d connections, want 2", streamsMax+1, len(used))
	}
}

func TestRequestShares(t *testing.T) {
	for _, test := range []struct {
		who  trust.Identity
		want string
	}{
		{trust.Identity{Kind: access.OfNode, Name: "a"}, "[]"},
		{trust.Identity{Kind: access.OfLocal, Name: "root@a"}, "[]"},
		{trust.Identity{Kind: access.OfUser, Name: "alice", Role: access.Admin},
			"[{user alice 256 33554432} {all users together 1024 134217728}]"},
		{trust.Identity{Kind: access.OfInstance, Name: "etl/web/server/2", Allocation: "etl/web.server[2]#4711"},
			"[{instance etl/web.server[2]#4711 64 8388608} {job etl/web 256 33554432} " +
				"{all instances together 1024 134217728}]"},
		{trust.Identity{}, "[{address 10.0.0.1 256 33554432} {all without credentials 1024 134217728}]"},
	} {
		if got := fmt.Sprint(requestShares(&test.who, "10.0.0.1")); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		who  trust.Identity
		want string
	}{
		{trust.Identity{Kind: access.OfNode, Name: "a"}, "[{node a 512}]"},
		{trust.Identity{Kind: access.OfUser, Name: "alice"}, "[{user alice 512} {all users together 3000}]"},
		{trust.Identity{Kind: access.OfInstance, Name: "etl/web/server/2", Allocation: "etl/web.server[2]#4711"},
			"[{instance etl/web.server[2]#4711 128} {job etl/web 1000} {all instances together 2000}]"},
	} {
		if got := fmt.Sprint(places(&test.who, 4000)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
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
	by := wire.Client(nil)
	defer by.CloseIdleConnections()
	answer, err := by.Get(wire.URL(wire.UnixPrefix + socket))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if err := Check(context.Background(), PathUser); err == nil {
		t.Error("a request of nobody is let through")
	}
}
