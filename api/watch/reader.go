package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
	"starling/trust"
)

// The types of responses.
const (
	typeThere    = "there"
	typeSynced   = "synced"
	typeAdded    = "added"
	typeChanged  = "changed"
	typeRemoved  = "removed"
	typeBookmark = "bookmark"
)

// Request is what somebody asks for.
type Request struct {
	*starlingv1.WatchRequest
	Caller trust.Identity
	// Past is the archive, nil if there is none.
	Past Past
	// Knows is the value that the reader of a list knows, nil for none.
	Knows *cluster.State
}

// reader tells one reader.
type reader struct {
	*query
	request *Request
	feed    *Feed
	run     *run
	send    Send
	// at is the index behind which it goes on.
	at   terms.Index
	time terms.Time
	// quiet tells when it is time for a bookmark.
	quiet *time.Timer
}

// List tells what is there in a value, and no changes: all of it, or what differs from the value that the reader knows.
// The rights are those of now.
func List(state, now *cluster.State, request *Request, send Send) error {
	q, err := newQuery(request.WatchRequest, request.Caller, now)
	if err != nil {
		return err
	}
	r := &reader{query: q, send: send}
	if request.Knows == nil {
		err = r.list(state)
	} else {
		r.at, r.time = state.Index, state.Time
		err = r.differ(between(request.Knows, state, q))
	}
	if err != nil {
		return err
	}
	return r.mark(typeSynced)
}

// differ tells what differs from what the reader knows.
func (r *reader) differ(all []change) error {
	for i := range all {
		kind, t := r.typeOf(&all[i])
		if t == nil {
			continue
		}
		if err := r.send(&starlingv1.WatchResponse{Index: uint64(r.at), Time: wire.Timestamp(r.time), Type: kind,
			Kind: t.kind, Name: t.name, Object: t.told.Object}); err != nil {
			return err
		}
	}
	return nil
}

// Watch tells a reader what it asks for, until the context ends, the reader has gone or it is told why not more. The
// peer must have reached the indexes of the request.
func (f *Feed) Watch(ctx context.Context, request *Request, send Send) error {
	run, leave := f.join()
	defer leave()
	now, err := run.reach(ctx, terms.Index(max(request.GetMinIndex(), request.GetAfter())))
	if err != nil {
		return err
	}
	q, err := newQuery(request.WatchRequest, request.Caller, now.value.Copy())
	if err != nil {
		return err
	}
	r := &reader{query: q, request: request, feed: f, run: run, send: send, quiet: time.NewTimer(bookmarkAfter)}
	defer r.quiet.Stop()
	if request.After == nil {
		err = r.list(now.value.Copy())
	} else {
		r.at, r.time = terms.Index(request.GetAfter()), now.value.Copy().Time
		err = r.catchUp(ctx)
	}
	if err == nil {
		err = r.mark(typeSynced)
	}
	if err != nil || request.GetOnce() {
		return err
	}
	return r.follow(ctx)
}

// mark says that the reader was told everything up to where it is.
func (r *reader) mark(kind string) error {
	return r.send(&starlingv1.WatchResponse{Index: uint64(r.at), Time: wire.Timestamp(r.time), Type: kind,
		Resume: uint64(r.at)})
}

// list tells what is there, and that this was all.
func (r *reader) list(s *cluster.State) error {
	index, at := uint64(s.Index), wire.Timestamp(s.Time)
	err := r.each(s, func(t *thing) error {
		return r.send(&starlingv1.WatchResponse{Index: index, Time: at, Type: typeThere, Kind: t.kind, Name: t.name,
			Object: t.told.Object})
	})
	r.at, r.time = s.Index, s.Time
	return err
}

// tell tells of an entry what is asked for.
func (r *reader) tell(e *entry) error {
	var last *starlingv1.WatchResponse
	for i := range e.changes {
		kind, t := r.typeOf(&e.changes[i])
		if t == nil {
			continue
		}
		if last != nil {
			if err := r.send(last); err != nil {
				return err
			}
		}
		last = &starlingv1.WatchResponse{Index: uint64(e.index), Time: wire.Timestamp(e.time), Type: kind,
			Resume: uint64(e.index) - 1, Kind: t.kind, Name: t.name, Object: t.told.Object}
	}
	r.at, r.time = e.index, e.time
	if last == nil {
		return nil
	}
	last.Resume = uint64(e.index)
	r.quiet.Reset(bookmarkAfter)
	return r.send(last)
}

// follow tells every entry as it comes.
func (r *reader) follow(ctx context.Context) error {
	for {
		now := r.run.since(r.at)
		if !now.kept {
			return &wire.Failure{Code: wire.Exhausted, Index: r.at, Reason: fmt.Sprintf(
				"this reader is slower than the cluster, and what changed behind index %d is not kept any more: "+
					"watch again with after=%d, which reads the archive, or without it, and ask for less", r.at, r.at)}
		}
		r.judge(&now)
		for i := range now.entries {
			if err := r.tell(&now.entries[i]); err != nil {
				return err
			}
		}
		if now.failure != nil {
			return now.failure
		}
		select {
		case <-now.changed:
		case <-r.quiet.C:
			r.quiet.Reset(bookmarkAfter)
			if err := r.mark(typeBookmark); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judge lets the newest value say what the caller may see, so that a role that was taken back ends at once.
func (r *reader) judge(now *moment) {
	if r.rights != nil && now.value.Index() > r.rights.Index {
		r.rights = now.value.Copy()
	}
}

// catchUp tells from the archive what is not kept of the entries behind the index of the reader.
func (r *reader) catchUp(ctx context.Context) error {
	if now := r.run.since(r.at); now.kept {
		for i := range now.entries {
			if err := r.tell(&now.entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if r.request.Past == nil {
		return r.gone(errors.New("it keeps no archive"))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, replayTimeMax, &wire.Failure{Code: wire.Exhausted, Reason: fmt.Sprintf(
		"the archive was read for %s: watch again with what the last response says in resume", replayTimeMax)})
	defer cancel()
	select {
	case r.feed.replays <- struct{}{}:
		defer func() { <-r.feed.replays }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	state, err := r.request.Past.At(ctx, r.at)
	if err != nil {
		return r.gone(err)
	}
	end, fold := r.run.since(r.at).value.Index(), newFolding(state)
	err = r.request.Past.Walk(ctx, r.at, end, func(_ *cluster.State, folded *report.Folded) error {
		e, ok := fold.fold(folded)
		if !ok {
			return &wire.Failure{Code: wire.Internal, Index: folded.Index, Reason: fmt.Sprintf(
				"entry %d of the archive leads to another value than it did: ask another peer", folded.Index)}
		}
		if err := r.tell(&e); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// gone says what to do where the past is not kept.
func (r *reader) gone(why error) error {
	return &wire.Failure{Code: wire.NotFound, Index: r.at, Decided: true, Reason: fmt.Sprintf(
		"what changed behind index %d cannot be told by this peer: %s. Ask another peer, or watch without after: that tells "+
			"what is there now", r.at, why)}
}
