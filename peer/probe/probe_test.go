package probe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"starling/cluster/facts"
	"starling/terms"
)

var web = terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"}, Order: 7}

// bench is a Prober whose news a test waits for.
type bench struct {
	t    *testing.T
	p    *Prober
	news chan terms.AllocationID
	// failed counts the checks that failed.
	failed atomic.Int32
}

func newBench(t *testing.T, run func(context.Context, []string) error) *bench {
	b := &bench{t: t, news: make(chan terms.AllocationID, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	b.p = New(ctx, Config{
		Run:     func(ctx context.Context, _ terms.AllocationID, command []string) error { return run(ctx, command) },
		Failed:  func() { b.failed.Add(1) },
		Changed: func(id terms.AllocationID) { b.news <- id },
	})
	t.Cleanup(func() {
		cancel()
		b.p.Wait()
	})
	return b
}

// told waits for news and wants the state to be this.
func (b *bench) told(ready bool, failure string) {
	b.t.Helper()
	select {
	case id := <-b.news:
		if id != web {
			b.t.Errorf("got news of %s", id)
		}
	case <-time.After(10 * time.Second):
		b.t.Fatal("there are no news")
	}
	state := b.p.State(web)
	why := state.Failure + state.Unready
	if state.Ready != ready || !strings.Contains(why, failure) || (why == "") != (failure == "") {
		b.t.Errorf("got %v, %q, want %v, %q", state.Ready, why, ready, failure)
	}
}

func portOf(t *testing.T, address string) []facts.PortUse {
	t.Helper()
	parsed, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return []facts.PortUse{{Name: "http", Number: uint16(parsed.Port)}}
}

func quick(c terms.Check) terms.Check {
	c.IntervalMillis, c.TimeoutMillis = 1, 5000
	return c
}

// TestHTTP asks a server that is well, then ill, and later not asked any more.
func TestHTTP(t *testing.T) {
	status, asked := atomic.Int32{}, atomic.Int32{}
	status.Store(http.StatusFound)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			t.Errorf("got a question for %s: redirects are not followed", r.URL)
		}
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", int(status.Load()))
	}))
	defer server.Close()
	b := newBench(t, nil)
	check := quick(terms.Check{Kind: terms.CheckHTTP, Port: "http", Path: "/health", FailuresMax: 2})
	b.p.Watch(web, []terms.Check{check}, portOf(t, server.Listener.Addr().String()))
	b.told(true, "")
	b.p.Watch(web, []terms.Check{{Kind: terms.CheckTCP}}, nil) // again: nothing changes
	status.Store(http.StatusServiceUnavailable)
	b.told(false, "check http /health on port http failed 3 times in a row: status 503")
	if got := b.failed.Load(); got != 3 {
		t.Errorf("got %d failures", got)
	}
	last := asked.Load()
	b.p.Forget(web)
	if state := b.p.State(web); state != (State{}) {
		t.Errorf("got %+v of what was forgotten", state)
	}
	b.p.Forget(web)
	b.p.Watch(web, nil, nil)
	if !b.p.State(web).Ready {
		t.Error("an instance without checks is not ready")
	}
	if got := asked.Load(); got != last {
		t.Errorf("got %d questions after the failure", got-last)
	}
}

// TestAllMustPass opens one port after another.
func TestAllMustPass(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open := atomic.Bool{}
	first := make(chan struct{}, 1)
	b := newBench(t, func(_ context.Context, command []string) error {
		select {
		case first <- struct{}{}:
		default:
		}
		if !open.Load() {
			return errors.New("exited with 1")
		}
		return nil
	})
	b.p.Watch(web, []terms.Check{
		quick(terms.Check{Kind: terms.CheckTCP, Port: "http"}),
		quick(terms.Check{Kind: terms.CheckCommand, Command: []string{"test"}, FailuresMax: 1 << 30}),
	}, portOf(t, listener.Addr().String()))
	<-first
	if state := b.p.State(web); state.Ready || state.Failure != "" {
		t.Errorf("got %+v although a check has not passed", state)
	}
	open.Store(true)
	b.told(true, "")
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b.told(false, "check tcp on port http failed once: dial tcp")
}

// TestFailures lists what checks say of instances that are not well.
func TestFailures(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ports := portOf(t, silent.Addr().String())
	slow := terms.Check{Kind: terms.CheckHTTP, Port: "http", Path: "/", IntervalMillis: 1, TimeoutMillis: 20}
	hangs := terms.Check{Kind: terms.CheckCommand, Command: []string{"probe", "-v"}, IntervalMillis: 1, TimeoutMillis: 20}
	for _, c := range []struct {
		check terms.Check
		want  string
	}{
		{slow, "check http / on port http failed once: no answer within 20ms"},
		{hangs, "check command probe -v failed once: no answer within 20ms"},
		{quick(terms.Check{Kind: terms.CheckTCP, Port: "admin"}),
			"check tcp on port admin failed once: the instance has no port admin"},
	} {
		b := newBench(t, func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b.p.Watch(web, []terms.Check{c.check}, ports)
		b.told(false, c.want)
	}
}

// TestFailing tells why an instance is not ready yet, before any of its checks has failed too often, and until it is.
func TestFailing(t *testing.T) {
	var asked atomic.Int32
	fails := make(chan struct{})
	b := newBench(t, func(context.Context, []string) error {
		switch asked.Add(1) {
		case 1:
			return errors.New("exited with 1")
		case 2:
			close(fails)
			<-t.Context().Done()
		}
		return nil
	})
	check := terms.Check{Kind: terms.CheckCommand, Command: []string{"test"}, IntervalMillis: 1, TimeoutMillis: 1000,
		StartMillis: 3_600_000}
	b.p.Watch(web, []terms.Check{check}, nil)
	<-fails
	if got, want := b.p.Failing()[web], "check command test fails: exited with 1"; got != want {
		t.Errorf("it is not ready because %q, want %q", got, want)
	}
	check.Command = []string{"other"}
	b.p.Forget(web)
	b.p.Watch(web, []terms.Check{check}, nil)
	b.told(true, "")
	if got := b.p.Failing(); len(got) > 0 {
		t.Errorf("what is ready is not because %q", got)
	}
}

// TestEnd ends everything while a question is under way.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan struct{})
	p := New(ctx, Config{
		Run: func(ctx context.Context, _ terms.AllocationID, _ []string) error {
			close(asked)
			<-ctx.Done()
			return ctx.Err()
		},
		Failed:  func() { t.Error("a check failed after the end") },
		Changed: func(terms.AllocationID) { t.Error("got news after the end") },
	})
	check := terms.Check{Kind: terms.CheckCommand, IntervalMillis: 1, TimeoutMillis: 60_000}
	p.Watch(web, []terms.Check{check}, nil)
	<-asked
	cancel()
	p.Wait()
	p.Watch(terms.AllocationID{Order: 8}, []terms.Check{check}, nil)
	p.Wait()
}

// TestGRPC asks a health service of gRPC about all that listens, and about services.
func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, known := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, known)
	go func() { _ = server.Serve(listener) }() // until the test ends
	defer server.Stop()
	known.SetServingStatus("orders", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	without := grpc.NewServer()
	go func() { _ = without.Serve(bare) }()
	defer without.Stop()
	for _, c := range []struct {
		service string
		at      net.Listener
		failure string
	}{
		{"", listener, ""},
		{"orders", listener, "check grpc orders on port http failed once: status NOT_SERVING"},
		{"nothing", listener, `the program knows no service "nothing"`},
		{"", bare, "check grpc on port http failed once: the program has no health service"},
	} {
		b := newBench(t, nil)
		b.p.Watch(web, []terms.Check{quick(terms.Check{Kind: terms.CheckGRPC, Port: "http", Service: c.service})},
			portOf(t, c.at.Addr().String()))
		b.told(c.failure == "", c.failure)
	}
}

// TestQuestion asks in the way that the check says, and takes no other status than it wants.
func TestQuestion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.Host != "web.example" || r.Header.Get("X-Asks") != "who" || string(body) != "{}" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer server.Close()
	ask := terms.Check{Kind: terms.CheckHTTP, Port: "http", Path: "/", Method: 2, Body: "{}", Status: 200,
		Headers: []terms.EnvVar{{Name: "host", Value: "web.example"}, {Name: "x-asks", Value: "who"}}}
	other := ask
	other.Status = 204
	for _, c := range []struct {
		check   terms.Check
		failure string
	}{
		{ask, ""},
		{other, "check http / on port http failed once: status 200, wanted 204"},
	} {
		b := newBench(t, nil)
		b.p.Watch(web, []terms.Check{quick(c.check)}, portOf(t, server.Listener.Addr().String()))
		b.told(c.failure == "", c.failure)
	}
}

// TestStartPeriod lets a program that is slow to begin fail meanwhile, but not after it has been well.
func TestStartPeriod(t *testing.T) {
	asked := 0
	b := newBench(t, func(context.Context, []string) error {
		asked++
		if asked == 5 {
			return nil
		}
		return errors.New("not yet")
	})
	b.p.Watch(web, []terms.Check{quick(terms.Check{Kind: terms.CheckCommand, Command: []string{"ask"}, FailuresMax: 1,
		StartMillis: 60_000})}, nil)
	b.told(true, "")
	b.told(false, "failed 2 times in a row: not yet")
	b = newBench(t, func(context.Context, []string) error { return errors.New("never") })
	ask := terms.Check{Kind: terms.CheckCommand, Command: []string{"ask"}, StartMillis: 1}
	b.p.Watch(web, []terms.Check{quick(ask)}, nil)
	b.told(false, "check command ask failed once: never")
}

// TestReadiness has a check that asks no more than whether the instance is ready fail for a while, after it passed and
// beside another.
func TestReadiness(t *testing.T) {
	well := atomic.Bool{}
	b := newBench(t, func(_ context.Context, command []string) error {
		if command[0] == "ready" && !well.Load() {
			return errors.New("no database")
		}
		return nil
	})
	b.p.Watch(web, []terms.Check{
		quick(terms.Check{Kind: terms.CheckCommand, Command: []string{"lives"}}),
		quick(terms.Check{Kind: terms.CheckCommand, Command: []string{"ready"}, FailuresMax: 3,
			OnFailure: terms.UnreadyOnFailure}),
	}, nil)
	for range 3 {
		b.told(false, "check command ready failed 4 times in a row: no database")
		well.Store(true)
		b.told(true, "")
		well.Store(false)
	}
	if got := b.p.State(web).Failure; got != "" {
		t.Errorf("it has failed: %s", got)
	}
}
