package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"starling/api/wire"
	"starling/replica"
	"starling/terms"
)

// events streams the journal to plain HTTP clients: as server-sent events if they are accepted, otherwise a JSON value
// a line. It begins at the entry after Last-Event-ID, at the one that from says, or at the oldest that is remembered.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	from, failure := eventsFrom(r)
	if failure != nil {
		writeFailure(w, http.StatusBadRequest, failure)
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
	err := s.backend.Follow(r.Context(), from, func(entry *replica.Folded) error {
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
		data, err := marshalJSON(entryMessage(entry))
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
	if data, err := json.Marshal(failureJSON(failureOf(ctx, err))); err == nil {
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
