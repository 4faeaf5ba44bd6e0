package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"starling/api/client"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
)

// scripted is a peer that gives one answer after another, the last for ever.
type scripted struct {
	starlingv1connect.UnimplementedStarlingHandler
	lock sync.Mutex
	// failures are what the next calls return; nil is an answer at the index.
	failures []*wire.Failure
	index    uint64
	// requests are the ids of writes, least the indexes that reads wanted.
	requests []string
	least    []uint64
}

func (s *scripted) next() error {
	if len(s.failures) == 0 {
		return nil
	}
	failure := s.failures[0]
	if len(s.failures) > 1 {
		s.failures = s.failures[1:]
	}
	if failure == nil {
		return nil
	}
	return failure.Wire()
}

func (s *scripted) KillJob(_ context.Context, request *starlingv1.KillJobRequest) (*starlingv1.KillJobResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.requests = append(s.requests, request.GetRequestId())
	return &starlingv1.KillJobResponse{Index: s.index}, s.next()
}

func (s *scripted) JobStatus(_ context.Context,
	request *starlingv1.JobStatusRequest) (*starlingv1.JobStatusResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.least = append(s.least, request.GetMinIndex())
	return &starlingv1.JobStatusResponse{Index: s.index}, s.next()
}

func (s *scripted) Info(_ context.Context, request *starlingv1.InfoRequest) (*starlingv1.InfoResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.least = append(s.least, request.GetMinIndex())
	return &starlingv1.InfoResponse{Index: s.index}, s.next()
}

func (s *scripted) TailJournal(
	_ context.Context, request *starlingv1.TailJournalRequest,
	stream *connect.ServerStream[starlingv1.TailJournalResponse],
) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.least = append(s.least, request.GetMinIndex())
	if err := s.next(); err != nil {
		return err
	}
	return stream.Send(&starlingv1.TailJournalResponse{Index: s.index})
}

func (s *scripted) serve(t *testing.T) (address string) {
	t.Helper()
	return serve(t, s)
}

func serve(t *testing.T, peer starlingv1connect.StarlingHandler) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(starlingv1connect.NewStarlingHandler(peer))
	folder, err := os.MkdirTemp("", "client-") // its path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "api")
	opened, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	opened.Answer(mux, nil)
	t.Cleanup(func() { opened.Close() })
	return wire.UnixPrefix + socket
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	return listener.Addr().String()
}

func ask(t *testing.T, addresses ...string) (*client.Client, context.Context) {
	t.Helper()
	c := client.New(addresses)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(func() { c.Close(); cancel() })
	return c, ctx
}

var later = &wire.Failure{Code: wire.Unavailable, Reason: "later"}

func TestRetries(t *testing.T) {
	refused := &wire.Failure{Code: wire.Conflict, Reason: "it is stopping"}
	full := &wire.Failure{Code: wire.Exhausted, Reason: "full"}
	cases := []struct {
		name     string
		failures []*wire.Failure
		calls    int
		want     string
	}{
		{"at once", nil, 1, ""},
		{"after a while", []*wire.Failure{later, full, nil}, 3, ""},
		{"never", []*wire.Failure{later}, 4, "later"},
		{"refused", []*wire.Failure{refused}, 1, "it is stopping"},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			s := &scripted{failures: one.failures, index: 7}
			c, ctx := ask(t, s.serve(t))
			_, err := c.KillJob(ctx, "web", 0, false)
			if text := reason(err); text != one.want || len(s.requests) != one.calls {
				t.Errorf("got %q after %d calls, want %q after %d", text, len(s.requests), one.want, one.calls)
			}
			if ids := slices.Compact(slices.Clone(s.requests)); len(ids) != 1 || len(ids[0]) < 20 {
				t.Errorf("got request ids %q, want one that nobody else has", s.requests)
			}
		})
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFailover(t *testing.T) {
	s := &scripted{index: 7}
	c, ctx := ask(t, nobody(t), s.serve(t))
	for range 2 {
		if _, err := c.KillJob(ctx, "web", 0, false); err != nil {
			t.Fatal(err)
		}
	}
	slow := &scripted{failures: []*wire.Failure{later}}
	c, ctx = ask(t, slow.serve(t), s.serve(t))
	for range 2 {
		if _, err := c.Info(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if len(slow.least) != 1 {
		t.Errorf("asked the peer that cannot answer %d times, want once", len(slow.least))
	}
}

func TestUnreachable(t *testing.T) {
	one, two := nobody(t), nobody(t)
	c, ctx := ask(t, one, two)
	began := time.Now()
	calls := map[string]error{}
	_, calls["unary"] = c.Info(ctx)
	calls["stream"] = c.TailJournal(ctx, &starlingv1.TailJournalRequest{}, nil)
	for name, err := range calls {
		failure := (*wire.Failure)(nil)
		if !errors.Is(err, client.ErrUnreachable) || !errors.As(err, &failure) || failure.Code != wire.Unavailable {
			t.Errorf("%s: got %v, want that nobody answers", name, err)
		}
		want := "no peer answers at " + one + ", " + two + ": is `starling dev` or `starling agent` running? " +
			"Use --address or STARLING_ADDRESS ("
		if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: got %s\nwant %s", name, err, want)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestUnknown tells a write that may count from one that does not.
func TestUnknown(t *testing.T) {
	doubtful := &wire.Failure{Code: wire.Unknown, Reason: "it may run"}
	ended := &wire.Failure{Code: wire.Conflict, Reason: "it has ended"}
	for _, one := range []struct {
		name     string
		failures []*wire.Failure
		again    bool
		want     wire.Code
	}{
		{"not taken", []*wire.Failure{later}, false, wire.Unavailable},
		{"perhaps taken, then not", []*wire.Failure{doubtful, later}, false, wire.Unknown},
		{"perhaps taken, then known", []*wire.Failure{doubtful, ended}, false, wire.Conflict},
		{"perhaps taken by another client", []*wire.Failure{later}, true, wire.Unknown},
	} {
		t.Run(one.name, func(t *testing.T) {
			s := &scripted{failures: one.failures}
			c, ctx := ask(t, s.serve(t))
			c.Repeatable("the id", one.again)
			_, err := c.KillJob(ctx, "web", 0, false)
			failure := (*wire.Failure)(nil)
			if !errors.As(err, &failure) || failure.Code != one.want {
				t.Errorf("got %v, want %s", err, one.want)
			}
			if one.want == wire.Unknown && !strings.Contains(err.Error(), "--request-id the id") {
				t.Errorf("got %q, want how to ask again", err)
			}
		})
	}
}

// TestRepeatable gives the same write the same id, and another another.
func TestRepeatable(t *testing.T) {
	s := &scripted{failures: []*wire.Failure{nil}}
	at := s.serve(t)
	for _, job := range []terms.JobName{"web", "web", "other"} {
		c, ctx := ask(t, at)
		c.Repeatable("the id", true)
		if _, err := c.KillJob(ctx, job, 0, false); err != nil {
			t.Fatal(err)
		}
	}
	if ids := s.requests; ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("got ids %q, want twice the same, and another", ids)
	}
}

// TestHangsUp asks a peer that dies while it is asked, which may show as the end of the connection or as its reset.
func TestHangsUp(t *testing.T) {
	for name, linger := range map[string]int{"end": -1, "reset": 0} {
		t.Run(name, func(t *testing.T) { hangsUp(t, linger) })
	}
}

func hangsUp(t *testing.T, linger int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			_, _ = connection.Read(make([]byte, 1024)) // what was asked does not matter
			_ = connection.(*net.TCPConn).SetLinger(linger)
			connection.Close()
		}
	}()
	s := &scripted{index: 7}
	c, ctx := ask(t, listener.Addr().String(), s.serve(t))
	if _, err := c.KillJob(ctx, "web", 0, false); err != nil {
		t.Errorf("got %v, want the answer of the other peer", err)
	}
}

// dying is a peer that dies in the middle of an answer.
type dying struct {
	starlingv1connect.UnimplementedStarlingHandler
}

func (dying) TailJournal(
	_ context.Context, _ *starlingv1.TailJournalRequest, stream *connect.ServerStream[starlingv1.TailJournalResponse],
) error {
	if err := stream.Send(&starlingv1.TailJournalResponse{Index: 7}); err != nil {
		return err
	}
	panic(http.ErrAbortHandler)
}

func TestStreamThatBreaksIsUnavailable(t *testing.T) {
	c, ctx := ask(t, serve(t, dying{}))
	visits := 0
	err := c.TailJournal(ctx, &starlingv1.TailJournalRequest{}, func(*starlingv1.TailJournalResponse) error {
		visits++
		return nil
	})
	failure := (*wire.Failure)(nil)
	if !errors.As(err, &failure) || failure.Code != wire.Unavailable || visits != 1 {
		t.Errorf("got %v after %d visits, want that the peer is unavailable after 1", err, visits)
	}
}

func TestWhoIsNoPeer(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler()) // HTTP/1.1 only
	defer other.Close()
	c, ctx := ask(t, other.Listener.Addr().String())
	if _, err := c.Info(ctx); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestReadsAskForWhatWasSeen(t *testing.T) {
	s := &scripted{index: 7}
	c, ctx := ask(t, s.serve(t))
	if _, err := c.KillJob(ctx, "web", 0, false); err != nil {
		t.Fatal(err)
	}
	s.index = 5
	if _, err := c.Info(ctx); err != nil {
		t.Fatal(err)
	}
	c.See(9)
	s.index = 12
	if err := c.TailJournal(ctx, &starlingv1.TailJournalRequest{},
		func(*starlingv1.TailJournalResponse) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{7, 9}; !slices.Equal(s.least, want) || c.Seen() != terms.Index(12) {
		t.Errorf("asked for %v, want %v; seen %d, want 12", s.least, want, c.Seen())
	}
}

func TestFollowJobOutlastsQuiet(t *testing.T) {
	late := &wire.Failure{Code: wire.Canceled, Reason: "the request was canceled, or its time was up"}
	s := &scripted{index: 7, failures: []*wire.Failure{nil, late, nil}}
	c, ctx := ask(t, s.serve(t))
	visits := 0
	err := c.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: "web"}, func(*starlingv1.JobStatusResponse) (bool, error) {
		visits++
		return visits == 2, nil
	})
	if want := []uint64{0, 8, 7}; err != nil || visits != 2 || !slices.Equal(s.least, want) {
		t.Errorf("got %v after %d visits, asked for %v, want %v", err, visits, s.least, want)
	}
}

func TestStreamsStopWhenTheirVisitorDoes(t *testing.T) {
	s := &scripted{index: 7, failures: []*wire.Failure{later, nil}}
	c, ctx := ask(t, s.serve(t))
	enough := errors.New("enough")
	visits := 0
	err := c.TailJournal(ctx, &starlingv1.TailJournalRequest{}, func(*starlingv1.TailJournalResponse) error {
		visits++
		return enough
	})
	if !errors.Is(err, enough) || visits != 1 {
		t.Errorf("got %v after %d visits", err, visits)
	}
}

func TestAddresses(t *testing.T) {
	cases := []struct{ text, want, problem string }{
		{"", "127.0.0.1:7460", ""},
		{"  ", "127.0.0.1:7460", ""},
		{"host", "host:7460", ""},
		{"host:80", "host:80", ""},
		{":80", "127.0.0.1:80", ""},
		{"10.0.0.1", "10.0.0.1:7460", ""},
		{"[::1]:80", "[::1]:80", ""},
		{"::1", "[::1]:7460", ""},
		{"[::1]", "[::1]:7460", ""},
		{"https://host:80/", "host:80", ""},
		{"unix:/run/starling/a.sock", "unix:/run/starling/a.sock", ""},
		{"unix:", "", "names no socket"},
		{"a:1, b ,c:3", "a:1 b:7460 c:3", ""},
		{"http://host:80", "", "http is not spoken, only https"},
		{"a,,b", "", "is empty"},
		{"host:0", "", `port "0" is not a number from 1 to 65535`},
		{"host:x", "", `port "x" is not a number from 1 to 65535`},
		{"host:65536", "", `port "65536" is not a number from 1 to 65535`},
		{"a/b", "", `host "a/b" is neither a name nor an IP address`},
		{"https://host/path", "", `host "host/path" is neither a name nor an IP address`},
		{"a b", "", `host "a b" is neither a name nor an IP address`},
		{"1:2:3", "", `host "1:2:3" is neither a name nor an IP address`},
	}
	for _, c := range cases {
		got, err := client.Addresses(c.text)
		if strings.Join(got, " ") != c.want || (err == nil) != (c.problem == "") ||
			err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q: got %q, %v, want %s%s", c.text, got, err, c.want, c.problem)
		}
	}
}

// TestHungPeer asks a peer that takes connections and says nothing, over TCP and by a socket, alone and before another.
func TestHungPeer(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a peer counts as hung")
	}
	folder, err := os.MkdirTemp("", "client-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(folder, "hung")} {
		listener, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		address := listener.Addr().String()
		if network == "unix" {
			address = wire.UnixPrefix + address
		}
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_, err := client.New([]string{address}).Info(ctx)
			if !errors.Is(err, client.ErrUnreachable) ||
				!strings.Contains(err.Error(), "it accepts connections and does not answer") {
				t.Errorf("alone: got %v", err)
			}
			if _, err := client.New([]string{address, (&scripted{index: 1}).serve(t)}).Info(ctx); err != nil {
				t.Errorf("before another: got %v", err)
			}
		})
	}
}

// TestPeerThatTakesNoMoreIsNotMissing asks where every connection is closed, as by a peer that has too many.
func TestPeerThatTakesNoMoreIsNotMissing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for connection, err := listener.Accept(); err == nil; connection, err = listener.Accept() {
			connection.Close()
		}
	}()
	_, err = client.New([]string{listener.Addr().String()}).Info(t.Context())
	if err == nil || !strings.Contains(err.Error(), "closed the connection: try again") {
		t.Errorf("got %v", err)
	}
}

// TestDrainDeadline refuses what a request cannot hold before anything is asked.
func TestDrainDeadline(t *testing.T) {
	for _, deadline := range []time.Duration{-time.Second, client.DrainDeadlineMax + time.Millisecond} {
		if _, err := new(client.Client).DrainNode(t.Context(), "a", deadline); err == nil {
			t.Errorf("%v: got no error", deadline)
		}
	}
}
