package client_test

import (
	"context"
	"fmt"
	"testing"

	"connectrpc.com/connect"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms"
)

// flowing answers with a stream of changes that a test writes.
type flowing struct {
	starlingv1connect.UnimplementedStarlingHandler
	// looks has a place for each time that the job is asked for, after for where each stream begins.
	looks chan uint64
	after chan uint64
	// changes are sent as they come; 0 breaks the stream.
	changes chan uint64
	// lost is the index at which the journal ends, if that is before what a stream asks for.
	lost terms.Index
}

func (f *flowing) JobStatus(_ context.Context,
	request *starlingv1.JobStatusRequest) (*starlingv1.JobStatusResponse, error) {
	index := max(request.GetMinIndex(), 7)
	f.looks <- index
	return &starlingv1.JobStatusResponse{Index: index}, nil
}

func (f *flowing) Watch(ctx context.Context, request *starlingv1.WatchRequest,
	stream *connect.ServerStream[starlingv1.WatchResponse]) error {
	f.after <- request.GetAfter()
	if f.lost > 0 && max(request.GetAfter(), request.GetMinIndex()) > uint64(f.lost) {
		return (&wire.Failure{Code: wire.NotFound, Index: f.lost, Reason: "the journal ends before"}).Wire()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case index := <-f.changes:
			if index == 0 {
				return later.Wire()
			}
			kind := "job"
			if index%2 == 0 {
				kind = "" // a bookmark: others have changed something
			}
			if err := stream.Send(&starlingv1.WatchResponse{Index: index, Resume: index, Kind: kind}); err != nil {
				return err
			}
		}
	}
}

// TestFollowJobMindsItsOwn asks for a job when it has changed, not for what others do, and goes on behind what it has
// read when the stream of changes breaks.
func TestFollowJobMindsItsOwn(t *testing.T) {
	f := &flowing{looks: make(chan uint64, 9), after: make(chan uint64, 9), changes: make(chan uint64)}
	c, ctx := ask(t, serve(t, f))
	ended := make(chan error)
	go func() {
		visits := 0
		ended <- c.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: "web"},
			func(*starlingv1.JobStatusResponse) (bool, error) {
				visits++
				return visits == 4, nil
			})
	}()
	read := func(from chan uint64) uint64 {
		t.Helper()
		select {
		case one := <-from:
			return one
		case <-ctx.Done():
			t.Fatal("nothing comes")
			return 0
		}
	}
	got := fmt.Sprint(read(f.looks), read(f.after))
	for _, index := range []uint64{8, 10, 11} {
		f.changes <- index
	}
	got += fmt.Sprint(" ", read(f.looks))
	f.changes <- 12
	f.changes <- 0
	got += fmt.Sprint(" ", read(f.looks), read(f.after))
	f.changes <- 13
	got += fmt.Sprint(" ", read(f.looks))
	if err := <-ended; err != nil || got != "7 7 11 12 12 13" || len(f.looks) > 0 {
		t.Errorf("got %q and %d looks more, %v", got, len(f.looks), err)
	}
}

// TestFollowJobAfterRestore has the journal end before what was read: the stream begins anew.
func TestFollowJobAfterRestore(t *testing.T) {
	f := &flowing{looks: make(chan uint64, 9), after: make(chan uint64, 9), changes: make(chan uint64, 1), lost: 5}
	c, ctx := ask(t, serve(t, f))
	f.changes <- 5
	visits := 0
	err := c.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: "web"}, func(*starlingv1.JobStatusResponse) (bool, error) {
		visits++
		return visits == 3, nil
	})
	if got := fmt.Sprint(len(f.after), <-f.after, <-f.after); err != nil || got != "2 7 0" {
		t.Errorf("streams begin behind %s, want 7 and then nothing: %v", got, err)
	}
}

// TestFollowJobWhileAgentRestarts has the only peer be away for longer than a request is tried.
func TestFollowJobWhileAgentRestarts(t *testing.T) {
	s := &scripted{index: 7, failures: []*wire.Failure{nil}}
	for range 12 {
		s.failures = append(s.failures, later)
	}
	s.failures = append(s.failures, nil)
	c, ctx := ask(t, serve(t, s))
	visits := 0
	err := c.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: "web"}, func(*starlingv1.JobStatusResponse) (bool, error) {
		visits++
		return visits == 2, nil
	})
	if err != nil || len(s.failures) > 1 {
		t.Errorf("after %d visits: %v", visits, err)
	}
	s.failures = []*wire.Failure{later}
	if c, ctx = ask(t, serve(t, s)); c.FollowJob(ctx, &starlingv1.JobStatusRequest{}, nil) == nil || len(s.least) > 20 {
		t.Errorf("a peer that has never answered is asked %d times", len(s.least))
	}
}

// TestFollowPeersWithoutStream asks for what comes after the last answer, where there is no stream of changes.
func TestFollowPeersWithoutStream(t *testing.T) {
	s := &stages{}
	c, ctx := ask(t, serve(t, s))
	visits := 0
	err := c.FollowPeers(ctx, "a", func(*starlingv1.ListPeersResponse) (bool, error) {
		visits++
		return visits == 3, nil
	})
	if got := fmt.Sprint(s.least); err != nil || got != "[0 8 9]" {
		t.Errorf("asked for %s, %v", got, err)
	}
}

// stages lists no peers, each time at a higher index, and refuses to be watched.
type stages struct {
	starlingv1connect.UnimplementedStarlingHandler
	least []uint64
}

func (s *stages) ListPeers(_ context.Context,
	request *starlingv1.ListPeersRequest) (*starlingv1.ListPeersResponse, error) {
	s.least = append(s.least, request.GetMinIndex())
	return &starlingv1.ListPeersResponse{Index: max(7, request.GetMinIndex())}, nil
}

func (s *stages) Watch(context.Context, *starlingv1.WatchRequest,
	*connect.ServerStream[starlingv1.WatchResponse]) error {
	return (&wire.Failure{Code: wire.Denied, Reason: "you may not"}).Wire()
}
