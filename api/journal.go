package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
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

// remembered visits the entries from the index on to end, as far as they are remembered. The peer must have folded
// end: so this does not wait for new ones.
func (s *server) remembered(ctx context.Context, from, end terms.Index, visit func(*report.Folded) error) error {
	if from > end {
		return nil
	}
	done := errors.New("all seen")
	err := s.backend.Follow(ctx, from, func(entry *report.Folded) error {
		if entry.Index <= end {
			if err := visit(entry); err != nil {
				return err
			}
		}
		if entry.Index >= end {
			return done
		}
		return nil
	})
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// events streams the journal to plain HTTP clients: as server-sent events if they are accepted, otherwise a JSON value
// a line. It begins at the entry after Last-Event-ID, at the one that from says, or at the oldest that is remembered.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if err := door.Check(r.Context(), door.PathEvents); err != nil {
		door.WriteFailure(w, http.StatusForbidden, failureOf(r.Context(), err))
		return
	}
	from, failure := eventsFrom(r)
	if failure != nil {
		door.WriteFailure(w, http.StatusBadRequest, failure)
		return
	}
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	kind := "application/x-ndjson"
	if sse {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	events := &eventWriter{response: w, control: http.NewResponseController(w), sse: sse}
	if err := events.flush(); err != nil {
		return // who asked has gone
	}
	first := true
	err := s.backend.Follow(r.Context(), from, func(entry *report.Folded) error {
		if first && entry.Index > from {
			oldest, err := json.Marshal(struct {
				Oldest terms.Index `json:"oldest_index"`
			}{entry.Index})
			if err != nil {
				return err
			}
			if err := events.write("oldest", 0, oldest); err != nil {
				return err
			}
		}
		first = false
		data, err := marshalJSON(wire.Entry(entry))
		if err != nil {
			return err
		}
		return events.write("entry", entry.Index, data)
	})
	s.endEvents(r.Context(), events, err)
}

// endEvents says why the stream ends to a reader who is still there.
func (s *server) endEvents(ctx context.Context, events *eventWriter, err error) {
	if err == nil || ctx.Err() != nil || events.failed {
		return
	}
	if data, err := json.Marshal(door.FailureJSON(failureOf(ctx, err))); err == nil {
		_ = events.write("error", 0, data) // if it cannot be told, it ends all the same
	}
}

func eventsFrom(r *http.Request) (terms.Index, *wire.Failure) {
	text, name := r.URL.Query().Get("from"), "from"
	offset := uint64(0)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		text, name, offset = last, "Last-Event-ID", 1
	}
	if text == "" {
		return 1, nil
	}
	from, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, invalid("the request", terms.Problem{
			Path: name, Reason: fmt.Sprintf("must be an index of the journal, such as 1, is %q", text)})
	}
	return terms.Index(max(from+offset, 1)), nil
}

type eventWriter struct {
	response http.ResponseWriter
	control  *http.ResponseController
	sse      bool
	failed   bool
}

// write sends one event; index 0 is none.
func (e *eventWriter) write(name string, index terms.Index, data []byte) error {
	text := string(data) + "\n"
	if e.sse {
		text = "event: " + name + "\n"
		if index > 0 {
			text += fmt.Sprintf("id: %d\n", index)
		}
		text += "data: " + string(data) + "\n\n"
	} else if name == "error" {
		text = fmt.Sprintf("{\"error\":%s}\n", data)
	}
	_, err := e.response.Write([]byte(text))
	if err == nil {
		err = e.flush()
	}
	e.failed = e.failed || err != nil
	return err
}

func (e *eventWriter) flush() error { return e.control.Flush() }
