package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

const (
	// followPause is the least time between two looks of FollowJob, and before a stream that broke is begun again.
	followPause = 20 * time.Millisecond
	// followMax is how long it trusts that nothing has changed.
	followMax = 5 * time.Second
)

// FollowJob visits how a job stands, now and whenever that may have changed, until visit returns true or an error. When
// peers that have answered before do so no more it asks on for half a minute.
func (c *Client) FollowJob(
	ctx context.Context, request *starlingv1.JobStatusRequest,
	visit func(*starlingv1.JobStatusResponse) (done bool, err error),
) error {
	f := &follower[*starlingv1.JobStatusResponse]{client: c, what: "job " + request.GetJob(), visit: visit,
		changes: &starlingv1.WatchRequest{Job: request.GetJob(), Kinds: []string{"job", "update", "instance"}}}
	f.ask = func(ctx context.Context, least uint64) (*starlingv1.JobStatusResponse, error) {
		request.MinIndex = least
		return c.JobStatus(ctx, request)
	}
	return f.follow(ctx)
}

// FollowPeers visits all nodes, now and whenever one of them, or an instance on it, may have changed, until visit
// returns true or an error.
func (c *Client) FollowPeers(ctx context.Context, node string,
	visit func(*starlingv1.ListPeersResponse) (done bool, err error)) error {
	f := &follower[*starlingv1.ListPeersResponse]{client: c, what: "the peers", visit: visit, ask: c.allPeers,
		changes: &starlingv1.WatchRequest{Node: node, Kinds: []string{"node", "instance"}}}
	return f.follow(ctx)
}

// follower asks whenever the stream of changes tells of one. Whoever is given no such stream, as instances are not, or
// asks a peer that has none, asks for what comes after the last answer instead.
type follower[A indexed] struct {
	client  *Client
	what    string
	changes *starlingv1.WatchRequest
	ask     func(ctx context.Context, least uint64) (A, error)
	visit   func(A) (done bool, err error)
}

func (f *follower[A]) follow(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	changed, none := make(chan struct{}, 1), make(chan struct{})
	for least, reads := uint64(0), false; ; {
		answer, quiet, err := f.lookAgain(ctx, least)
		switch {
		case quiet && least > 0: // nothing was written; look whether the peer is still there
			least = 0
			continue
		case err != nil:
			return err
		}
		if done, err := f.visit(answer); done || err != nil {
			return err
		}
		if !reads {
			reads, f.changes.After = true, new(answer.GetIndex())
			reader.Go(func() { f.watch(reading, changed, none) })
		}
		least = 0
		pause(ctx, followPause)
		select {
		case <-changed:
		case <-none:
			least = answer.GetIndex() + 1
		case <-time.After(followMax):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return fmt.Errorf("following %s: %w", f.what, ctx.Err())
		}
	}
}

func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// lookAgain asks until there is an answer, as long as an agent that has answered before may be restarting.
func (f *follower[A]) lookAgain(ctx context.Context, least uint64) (answer A, quiet bool, err error) {
	err = f.client.resume(ctx, func() (moved bool, err error) {
		answer, quiet, err = f.look(ctx, least)
		if quiet && least == 0 {
			err = &wire.Failure{Code: wire.Unavailable, Reason: "no peer answers"}
		}
		return false, final(err, f.client.Seen() == 0)
	})
	return answer, quiet, err
}

// look asks once; quiet tells that the time was up.
func (f *follower[A]) look(ctx context.Context, least uint64) (answer A, quiet bool, err error) {
	wait, cancel := context.WithTimeout(ctx, followMax)
	defer cancel()
	answer, err = f.ask(wait, least)
	// Either side may notice first that the time is up.
	failure := (*wire.Failure)(nil)
	return answer, errors.As(err, &failure) && failure.Code == wire.Canceled && ctx.Err() == nil, err
}

// watch says when something has changed, and when the stream broke: what that means is found by asking. It closes none
// if there is no stream to be had.
func (f *follower[A]) watch(ctx context.Context, changed chan<- struct{}, none chan<- struct{}) {
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // it is told already
		}
	}
	for {
		err := f.client.Watch(ctx, f.changes, func(m *starlingv1.WatchResponse) error {
			f.changes.After = new(m.GetResume())
			if m.GetKind() != "" {
				tell()
			}
			return nil
		})
		failure := (*wire.Failure)(nil)
		switch {
		case !errors.As(err, &failure), failure.Code == wire.Unavailable, failure.Code == wire.Exhausted:
		case failure.Code == wire.NotFound && f.changes.After != nil:
			f.changes.After = nil // the cluster was restored from an older backup
		default:
			close(none)
			return
		}
		tell()
		if pause(ctx, followPause); ctx.Err() != nil {
			return
		}
	}
}
