package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/watch"
	"starling/api/wire"
	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
)

// TailJournal reads the entries that the peer remembers, in words.
func (s *server) TailJournal(
	ctx context.Context, request *starlingv1.TailJournalRequest,
	stream *connect.ServerStream[starlingv1.TailJournalResponse],
) error {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return err
	}
	if err := stream.Send(nil); err != nil { // the head, so that who follows knows that he is heard
		return err
	}
	from := max(terms.Index(request.GetFrom()), 1)
	if last := terms.Index(request.GetLast()); request.GetFrom() == 0 && last > 0 && state.Index > last {
		from = state.Index - last + 1
	}
	first := true
	visit := func(entry *report.Folded) error {
		if first && entry.Index > from {
			if err := stream.Send(&starlingv1.TailJournalResponse{Index: uint64(entry.Index),
				OldestIndex: uint64(entry.Index)}); err != nil {
				return err
			}
		}
		first = false
		return stream.Send(&starlingv1.TailJournalResponse{Index: uint64(entry.Index), Entry: wire.Entry(entry)})
	}
	if request.GetFollow() {
		return s.backend.Follow(ctx, from, visit)
	}
	return s.remembered(ctx, from, state.Index, visit)
}

// remembered visits the entries from the index on to end, as far as they are remembered.
func (s *server) remembered(ctx context.Context, from, end terms.Index, visit func(*report.Folded) error) error {
	done := errors.New("all seen")
	err := s.backend.Remembered(ctx, from, func(entry *report.Folded) error {
		if entry.Index > end {
			return done
		}
		return visit(entry)
	})
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// Watch tells what there is, and then what changes.
func (s *server) Watch(ctx context.Context, request *starlingv1.WatchRequest,
	stream *connect.ServerStream[starlingv1.WatchResponse]) error {
	if err := s.reachable(ctx, request); err != nil {
		return err
	}
	state, err := s.stateAt(ctx, max(request.GetMinIndex(), request.GetAfter()))
	if err != nil {
		return err
	}
	asked := &watch.Request{WatchRequest: request, Caller: door.CallerOf(ctx)}
	if archive := s.backend.Archive(); archive != nil {
		asked.Past = archive
	}
	if request.Known == nil && !isPast(ctx) {
		return s.feed.Watch(ctx, asked, stream.Send)
	}
	if asked.Knows, err = s.known(ctx, request); err != nil {
		return err
	}
	now, err := s.backend.State(ctx, 0)
	if err != nil {
		return err
	}
	return watch.List(state, now, asked, stream.Send)
}

// reachable refuses a reader that goes on behind an index which the journal does not have. The journal itself is asked:
// this peer may only lag behind.
func (s *server) reachable(ctx context.Context, request *starlingv1.WatchRequest) error {
	index := terms.Index(max(request.GetMinIndex(), request.GetAfter()))
	if request.After == nil || index <= s.backend.Status().Index {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	head, err := s.backend.Head(ctx)
	if err != nil || index <= head {
		return nil // it is waited for, and what is wrong then is told
	}
	return &wire.Failure{Code: wire.NotFound, Index: head, Decided: true, Reason: fmt.Sprintf(
		"what changed behind index %d cannot be told: the journal ends at index %d, as after a restore from an older "+
			"backup. Watch without after and min_index: that tells what is there now", index, head)}
}

// known returns the value that a reader knows, nil if it says none.
func (s *server) known(ctx context.Context, request *starlingv1.WatchRequest) (*cluster.State, error) {
	switch {
	case request.Known == nil:
		return nil, nil
	case !request.GetOnce() || request.After != nil:
		return nil, invalid("the request", terms.Problem{Path: "known", Reason: `goes with "once" and without "after"`})
	}
	return s.past(ctx, moment{index: terms.Index(request.GetKnown())})
}
