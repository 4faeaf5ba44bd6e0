package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/cluster"
	"starling/terms"
	"starling/trust"
)

// server answers for one peer.
type server struct {
	backend Backend
	options Options
	// peers is how other peers are reached.
	peers *http.Transport
	// wait bounds how long a request waits for an index or for its entry, readerTimeout how long for a reader.
	wait, readerTimeout time.Duration
	// imagining has a place for every request under way that folds or places on a copy of the value, which may take long.
	imagining chan struct{}
}

// imaginedMax bounds the requests that fold or place on a copy of the value at a time, so that the peer itself gets
// on.
const imaginedMax = 2

// NewServer returns the handler of all requests to the peer behind the backend. A door.Door says who sends them.
func NewServer(backend Backend, options Options) http.Handler {
	return newServer(backend, options).handler()
}

func newServer(backend Backend, options Options) *server {
	return &server{
		backend: backend, options: options, peers: wire.Transport(options.Shows), wait: waitMax,
		readerTimeout: readerTimeoutMax, imagining: make(chan struct{}, imaginedMax),
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	path, procedures := starlingv1connect.NewStarlingHandler(s,
		connect.WithReadMaxBytes(door.BodyBytesMax),
		connect.WithCompressMinBytes(1<<10),
		connect.WithCodec(strictJSON{"json"}),
		connect.WithCodec(strictJSON{"json; charset=utf-8"}),
		connect.WithInterceptors(failures{}, guard{s}, pasts{}),
		connect.WithRecover(s.recovered),
	)
	mux.Handle(path, withMedia(procedures))
	mux.HandleFunc("GET "+door.PathEvents, s.events)
	mux.HandleFunc("GET "+door.PathHealth, s.health)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		door.WriteFailure(w, http.StatusNotFound, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
			"nothing is at %s %s: try GET /healthz, GET /v1/events or POST %sInfo", r.Method, r.URL.Path, path)})
	})
	return withReaderTimeout(mux, s.readerTimeout)
}

// recovered turns a panic, which is a bug, into an answer without its details.
func (s *server) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	if s.options.Log != nil {
		s.options.Log.Error("a request failed by a bug", "procedure", spec.Procedure, "cause", cause, "stack",
			string(debug.Stack()))
	}
	return &wire.Failure{Code: wire.Internal,
		Reason: "this request met a bug in the peer: its log says where; please report it"}
}

// health answers 200 when the peer is a member, for load balancers and scripts. What is wrong with its machine it
// tells only users.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	status := s.backend.Status()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if status.Phase != "member" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s %s at index %d\n", status.Self, status.Phase, status.Index)
	if door.CallerOf(r.Context()).Kind != trust.OfUser {
		return
	}
	for _, warning := range status.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

// Info tells what the peer knows of itself.
func (s *server) Info(ctx context.Context, request *starlingv1.InfoRequest) (*starlingv1.InfoResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	status := s.backend.Status()
	answer := &starlingv1.InfoResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Peer: string(status.Self), Phase: status.Phase,
		Warnings: status.Warnings, Version: s.options.Version, Rules: uint32(state.Rules),
	}
	for id, reason := range status.Waits {
		answer.Waits = append(answer.Waits, &starlingv1.Wait{Allocation: id.String(), Reason: reason})
	}
	return answer, nil
}

// stateAt returns the value at the index or later, or that of the past which the request asks about, as a copy of the
// request's own.
func (s *server) stateAt(ctx context.Context, least uint64) (*cluster.State, error) {
	if m, ok := ctx.Value(momentKey{}).(moment); ok {
		return s.past(ctx, m)
	}
	wait, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	state, err := s.backend.State(wait, terms.Index(least))
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		reached := s.backend.Status().Index
		return nil, &wire.Failure{Code: wire.Unavailable, Index: reached, Reason: fmt.Sprintf(
			"this peer is at index %d and has not reached %d in %s: ask again, or ask another peer", reached, least, s.wait)}
	}
	return state, err
}

// imagine waits for a place among the requests that fold or place on a copy; done gives it back.
func (s *server) imagine(ctx context.Context) (done func(), err error) {
	select {
	case s.imagining <- struct{}{}:
		return func() { <-s.imagining }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
