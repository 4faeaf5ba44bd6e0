package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// TestProtocols calls one procedure of each shape in every protocol, over HTTP/1.1 and HTTP/2.
func TestProtocols(t *testing.T) {
	a, _ := pair()
	address := a.serve(t)
	one := plain()
	two := wire.Client(nil)
	defer two.CloseIdleConnections()
	cases := []struct {
		name    string
		client  *http.Client
		options []connect.ClientOption
	}{
		{"connect over 1.1", one, nil},
		{"connect over 2", two, nil},
		{"connect by GET", one, []connect.ClientOption{connect.WithHTTPGet()}},
		{"JSON", one, []connect.ClientOption{connect.WithProtoJSON()}},
		{"gRPC", two, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-Web", one, []connect.ClientOption{connect.WithGRPCWeb()}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := within(t)
			peer := starlingv1connect.NewStarlingClient(c.client, wire.URL(address), c.options...)
			info, err := peer.Info(ctx, &starlingv1.InfoRequest{MinIndex: 6})
			if err != nil || info.GetPeer() != "a~1" {
				t.Fatalf("got %v, %v", info, err)
			}
			answers, err := peer.TailJournal(ctx, &starlingv1.TailJournalRequest{})
			if err != nil {
				t.Fatal(err)
			}
			defer answers.Close()
			entries := 0
			for answers.Receive() {
				entries++
			}
			if want := len(a.entries); entries != want || answers.Err() != nil {
				t.Errorf("got %d entries, %v, want %d", entries, answers.Err(), want)
			}
			_, err = peer.KillJob(ctx, &starlingv1.KillJobRequest{Job: "nope"})
			if failure := wire.FailureOf(err); failure == nil || failure.Code != wire.NotFound || failure.Index == 0 {
				t.Errorf("got %+v of %v", failure, err)
			}
		})
	}
}

// asFailure fails the test unless err is a failure.
func asFailure(t *testing.T, err error) *wire.Failure {
	t.Helper()
	failure := (*wire.Failure)(nil)
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a failure", err)
	}
	return failure
}

func TestReadsWaitForTheirIndex(t *testing.T) {
	a, _ := pair()
	ctx := within(t)
	c := ask(t, a.serve(t))
	got := make(chan uint64, 1)
	go func() {
		page, err := c.ListJobs(ctx, &starlingv1.ListJobsRequest{MinIndex: 8})
		if err != nil {
			t.Error(err)
		}
		got <- page.GetIndex()
	}()
	a.add("a~1", &command.TellTime{})
	select {
	case index := <-got:
		t.Fatalf("answered at %d before 8 was folded", index)
	default:
	}
	a.add("a~1", &command.TellTime{})
	if index := <-got; index != 8 {
		t.Errorf("answered at %d, want 8", index)
	}
}

func TestReadsWaitNoLongerThanTheyMay(t *testing.T) {
	a, _ := pair()
	c := ask(t, a.serve(t, func(s *server) { s.wait = time.Millisecond }))
	ctx := within(t)
	calls := map[string]func() error{
		"ListJobs": func() error { _, err := c.ListJobs(ctx, &starlingv1.ListJobsRequest{MinIndex: 99}); return err },
		"JobStatus": func() error {
			_, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{MinIndex: 99, Job: "x"})
			return err
		},
		"Why":       func() error { _, err := c.Why(ctx, &starlingv1.WhyRequest{MinIndex: 99, Job: "x"}); return err },
		"ListPeers": func() error { _, err := c.ListPeers(ctx, &starlingv1.ListPeersRequest{MinIndex: 99}); return err },
		"TailJournal": func() error {
			return c.TailJournal(ctx, &starlingv1.TailJournalRequest{MinIndex: 99},
				func(*starlingv1.TailJournalResponse) error { return nil })
		},
		"Logs": func() error {
			return c.Logs(ctx, &starlingv1.LogsRequest{MinIndex: 99, Job: "x"},
				func(*starlingv1.LogsResponse) error { return nil })
		},
	}
	want := "this peer is at index 6 and has not reached 99 in 1ms: ask again, or ask another peer"
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := asFailure(t, call()); got.Code != wire.Unavailable || got.Index != 6 || got.Reason != want {
				t.Errorf("got %+v, want %s", got, want)
			}
		})
	}
}

// TestRequestsCountOnce sends a request again, as after a connection that broke before the answer came.
func TestRequestsCountOnce(t *testing.T) {
	a, b := pair()
	addresses := []string{a.serve(t), b.serve(t)}
	ctx := within(t)
	submit := &starlingv1.SubmitJobRequest{RequestId: "r1", Spec: wire.Spec(jobOn("web", 1, "a"))}
	kill := &starlingv1.KillJobRequest{RequestId: "r2", Job: "nope"}
	for _, address := range addresses {
		by := wire.Client(nil)
		defer by.CloseIdleConnections()
		peer := wire.Peer(by, address)
		if answer, err := peer.SubmitJob(ctx, submit); err != nil || answer.GetJob() != "web" {
			t.Errorf("got %v, %v", answer, err)
		}
		if failure := wire.FailureOf(second(peer.KillJob(ctx, kill))); failure == nil || failure.Code != wire.NotFound {
			t.Errorf("got %+v", failure)
		}
	}
	state, err := a.State(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if j := state.JobOf("web"); state.Jobs() != 1 || state.LastJob != 1 || j.Version != 1 {
		t.Errorf("got %d jobs, the last %d, version %d, want one of each", state.Jobs(), state.LastJob, j.Version)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWritesThatFail(t *testing.T) {
	cases := []struct {
		name   string
		change func(*peer)
		code   wire.Code
		want   string
	}{
		{"refused", func(p *peer) { p.add(p.self, &command.SubmitJob{Spec: *jobOn("web", 1, "a")}) }, wire.Conflict,
			"job web exists in version 1: say that the change is made against it"},
		{"peer cannot", func(p *peer) { p.failure = errors.New("this peer has stopped") }, wire.Unavailable,
			"submit-job: this peer has stopped"},
		{"nothing comes of it", func(p *peer) { p.stuck = true }, wire.Unknown,
			"the outcome is not known after 20ms: send it again with the same request_id, it will count once"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, _ := pair()
			c.change(a)
			spec := jobOn("web", 1, "a")
			spec.Type = terms.Stateless
			_, err := ask(t, a.serve(t, func(s *server) { s.wait = 20 * time.Millisecond })).SubmitJob(within(t), spec, 0)
			if got := asFailure(t, err); got.Code != c.code || got.Reason != c.want {
				t.Errorf("got %+v, want %s: %s", got, c.code, c.want)
			}
		})
	}
}

func TestReadsThatFail(t *testing.T) {
	a, _ := pair()
	c := ask(t, a.serve(t))
	a.failure = errors.New("this peer has stopped")
	_, err := c.AllPeers(within(t))
	if got := asFailure(t, err); got.Code != wire.Unavailable || got.Reason != "this peer has stopped" {
		t.Errorf("got %+v", got)
	}
	_, err = c.AllJobs(within(t), "")
	if got := asFailure(t, err); got.Code != wire.Unavailable || got.Reason != "this peer has stopped" {
		t.Errorf("got %+v", got)
	}
}

// broken is a peer with a bug.
type broken struct{ *peer }

func (broken) State(context.Context, terms.Index) (*cluster.State, error) { panic("oops") }

func TestBugsStayInside(t *testing.T) {
	a, _ := pair()
	log := &bytes.Buffer{}
	handler := NewServer(broken{a}, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	address := serveHandler(t, handler)
	_, err := ask(t, address).Info(within(t))
	if got := asFailure(t, err); got.Code != wire.Internal || strings.Contains(got.Reason, "oops") {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(log.String(), "oops") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("got log %s, want the cause and where it was", log)
	}
}

func TestCanceled(t *testing.T) {
	a, _ := pair()
	c := ask(t, a.serve(t))
	ctx, cancel := context.WithTimeout(within(t), 10*time.Millisecond)
	defer cancel()
	_, err := c.ListJobs(ctx, &starlingv1.ListJobsRequest{MinIndex: 99})
	if got := asFailure(t, err); got.Code != wire.Canceled {
		t.Errorf("got %+v", got)
	}
}

// TestServeEnds ends the server while a stream is read.
func TestServeEnds(t *testing.T) {
	a, _ := pair()
	socket := filepath.Join(socketFolder(t), "api")
	opened, err := door.Open(door.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	opened.Answer(NewServer(a, Options{}), a)
	ended := make(chan error, 1)
	by := wire.Client(nil)
	defer by.CloseIdleConnections()
	answers, err := wire.Peer(by, wire.UnixPrefix+socket).TailJournal(within(t),
		&starlingv1.TailJournalRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	for answers.Receive() {
		if answers.Msg().GetIndex() == 6 {
			go func() { ended <- opened.Close() }()
		}
	}
	if got := wire.FailureOf(answers.Err()); got.Code != wire.Unavailable ||
		got.Reason != "this peer is stopping: ask another, or again in a moment" {
		t.Errorf("got %+v", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestQuietStreams lets more time pass between two answers than a reader has for one.
func TestQuietStreams(t *testing.T) {
	const readerTimeout = 20 * time.Millisecond
	a, _ := pair()
	address := a.serve(t, func(s *server) { s.readerTimeout = readerTimeout })
	for name, by := range map[string]*http.Client{"HTTP/1.1": plain(), "HTTP/2": wire.Client(nil)} {
		defer by.CloseIdleConnections()
		answers, err := wire.Peer(by, address).TailJournal(within(t),
			&starlingv1.TailJournalRequest{Last: 1, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if !answers.Receive() {
				t.Fatalf("%s: got %v after a quiet while", name, answers.Err())
			}
			<-time.After(3 * readerTimeout) // nothing can tell that nothing happens
			a.add("a~1", &command.TellTime{})
		}
		answers.Close()
	}
}
