// Package streams answers procedures that stream to plain HTTP clients, as curl and browsers are:
//
//	curl -N 'https://HOST:PORT/v1/events?kinds=job,instance&job=web'
//
// Parameters are the fields of the request. Each response is a line of JSON, or a server-sent event if those are
// accepted; its id is where the next request goes on, which browsers send as Last-Event-ID. The procedures of the same
// peer are asked in the name of who asks, so that the same rights hold.
package streams

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"starling/api/door"
	"starling/api/inside"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// Handle answers the paths of streams; procedures is the handler of the peer's.
func Handle(mux *http.ServeMux, procedures http.Handler) {
	h := handler{inside.New(procedures)}
	mux.HandleFunc("GET "+door.PathEvents, func(w http.ResponseWriter, r *http.Request) {
		h.events(w, r, door.PathEvents, &starlingv1.WatchRequest{})
	})
	mux.HandleFunc("GET "+door.PathEndpoints+"{job...}", func(w http.ResponseWriter, r *http.Request) {
		h.events(w, r, door.PathEndpoints, &starlingv1.WatchRequest{
			Kinds: []string{"endpoint"}, Job: r.PathValue("job"), Once: r.Header.Get(lastEventID) == "",
		})
	})
	mux.HandleFunc("GET "+door.PathJournal, h.journal)
}

// lastEventID is the header in which browsers say which event they have seen last.
const lastEventID = "Last-Event-ID"

// handler asks the procedures.
type handler struct {
	starlingv1connect.StarlingClient
}

// events answers what is watched.
func (h handler) events(w http.ResponseWriter, r *http.Request, path string, request *starlingv1.WatchRequest) {
	last, failure := read(r, path, request)
	if failure != nil {
		fail(w, failure)
		return
	}
	if last != nil {
		request.After = last
	}
	if path == door.PathEndpoints && request.GetOnce() {
		_, err := h.JobStatus(r.Context(), &starlingv1.JobStatusRequest{Job: request.GetJob(), PageSize: 1,
			MinIndex: request.GetMinIndex()})
		if none := wire.FailureOf(err); none != nil && none.Code == wire.NotFound {
			fail(w, none)
			return
		}
	}
	stream, err := h.Watch(r.Context(), request)
	if err != nil {
		fail(w, wire.FailureOf(err))
		return
	}
	pass(w, r, stream, func() (proto.Message, uint64) { return stream.Msg(), stream.Msg().GetResume() })
}

// journal answers what stands in the journal.
func (h handler) journal(w http.ResponseWriter, r *http.Request) {
	request := &starlingv1.TailJournalRequest{}
	last, failure := read(r, door.PathJournal, request)
	if failure != nil {
		fail(w, failure)
		return
	}
	if last != nil {
		request.From = *last + 1
	}
	if last == nil && request.GetFrom() > 0 && !request.GetFollow() {
		// The next entry may be asked for before it is there.
		info, err := h.Info(r.Context(), &starlingv1.InfoRequest{MinIndex: request.GetMinIndex()})
		if err == nil && request.GetFrom() > info.GetIndex()+1 {
			fail(w, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
				"index %d is in the future: the newest that this peer has folded is %d", request.GetFrom(), info.GetIndex())})
			return
		}
	}
	stream, err := h.TailJournal(r.Context(), request)
	if err != nil {
		fail(w, wire.FailureOf(err))
		return
	}
	pass(w, r, stream, func() (proto.Message, uint64) { return stream.Msg(), stream.Msg().GetEntry().GetIndex() })
}

// responses is what a procedure answers.
type responses interface {
	Receive() bool
	Err() error
	Close() error
}

// pass writes the responses of a procedure as they come; last returns the one that was received last, and where to go
// on behind it, 0 if that is nowhere.
func pass(w http.ResponseWriter, r *http.Request, all responses, last func() (m proto.Message, id uint64)) {
	defer all.Close()
	out := &writer{to: w, control: http.NewResponseController(w),
		sse: strings.Contains(r.Header.Get("Accept"), "text/event-stream")}
	for all.Receive() {
		m, id := last()
		data, err := wire.JSON(m)
		if err != nil || out.write(id, data) != nil {
			return // who asked has gone, or this peer sends what it cannot write
		}
	}
	if err := all.Err(); err != nil && r.Context().Err() == nil {
		out.fail(wire.FailureOf(err))
	}
}

// fail answers with a failure.
func fail(w http.ResponseWriter, failure *wire.Failure) {
	door.WriteFailure(w, door.StatusOf(failure.Code), failure)
}

// writer writes lines, or events.
type writer struct {
	to         http.ResponseWriter
	control    *http.ResponseController
	sse, begun bool
}

// write writes a message and where to go on behind it.
func (o *writer) write(id uint64, data []byte) error {
	o.begin()
	text := string(data) + "\n"
	if o.sse {
		text = "data: " + text + "\n"
		if id > 0 {
			text = fmt.Sprintf("id: %d\n%s", id, text)
		}
	}
	if _, err := o.to.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}

func (o *writer) begin() {
	if o.begun {
		return
	}
	o.begun = true
	kind := "application/x-ndjson"
	if o.sse {
		kind = "text/event-stream"
	}
	o.to.Header().Set("Content-Type", kind)
	o.to.Header().Set("Cache-Control", "no-store")
	o.to.Header().Set("X-Content-Type-Options", "nosniff")
}

// fail says what is wrong: with a status if nothing was written yet, and otherwise at the end.
func (o *writer) fail(failure *wire.Failure) {
	data, err := json.Marshal(door.FailureJSON(failure))
	switch {
	case !o.begun:
		fail(o.to, failure)
	case err != nil:
	case o.sse:
		fmt.Fprintf(o.to, "event: failure\ndata: %s\n\n", data)
	default:
		fmt.Fprintf(o.to, "{\"error\":%s}\n", data)
	}
}
