package door

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	ask := func(by *http.Transport) (status int, told string) {
		answer, err := (&http.Client{Transport: by}).Get(wire.URL(wire.UnixPrefix + socket))
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
	var all []*http.Transport
	for range 3 {
		all = append(all, wire.Transport(nil))
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
