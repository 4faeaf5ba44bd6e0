package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"starling/api/body"
	"starling/api/door"
	"starling/api/guard"
	"starling/api/metrics"
	"starling/api/openapi"
	"starling/api/relocation"
	"starling/api/series"
	"starling/api/session"
	"starling/api/silence"
	"starling/api/stats"
	"starling/api/streams"
	"starling/api/textlogs"
	"starling/api/turns"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/watch"
	"starling/api/wire"
	"starling/cluster"
	"starling/replica/report"
	"starling/terms"
)

// server answers for one peer.
type server struct {
	*session.Server
	*stats.Reader
	*relocation.Mover
	*series.Charts
	backend Backend
	options Options
	// peers is how other peers are reached.
	peers *http.Client
	// wait bounds how long a request waits for an index or for its entry, readerTimeout how long for a reader.
	wait, readerTimeout time.Duration
	// imagining has a place for every request under way that folds or places on a copy of the value, which may take long.
	imagining *turns.Turns
	// walking has one for every request that folds a stretch of the past.
	walking *turns.Turns
	feed    *watch.Feed
}

// imaginedMax bounds the requests that fold or place on a copy of the value at a time, so that the peer itself gets
// on; walkedMax those that fold a stretch of the past.
const (
	imaginedMax = 2
	walkedMax   = 4
)

// NewServer returns the handler of all requests to the peer behind the backend. A door.Door says who sends them.
func NewServer(backend Backend, options Options) http.Handler {
	return newServer(backend, options).handler()
}

func newServer(backend Backend, options Options) *server {
	if options.Meter == nil {
		options.Meter = metrics.NewMeter()
	}
	s := &server{
		backend: backend, options: options, peers: wire.Client(options.Shows), wait: waitMax,
		readerTimeout: readerTimeoutMax, imagining: turns.New(imaginedMax, "imagines"),
		walking: turns.New(walkedMax, "reads the past"), feed: watch.New(backend),
	}
	s.Server = &session.Server{Backend: backend, State: s.stateAt, Slot: slotOf[*starlingv1.ExecRequest], Peers: s.peers,
		Log: options.Log}
	s.Mover = &relocation.Mover{Backend: backend, State: s.stateAt, Peers: s.peers, Log: options.Log}
	s.Charts = series.New(s.stateAt, func() series.Archive {
		if archive := backend.Archive(); archive != nil {
			return archive
		}
		return nil
	})
	s.Reader = &stats.Reader{Backend: backend, State: s.stateAt, Job: jobOf, Peers: s.peers}
	return s
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	path, procedures := starlingv1connect.NewStarlingHandler(s,
		connect.WithReadMaxBytes(door.BodyBytesMax),
		connect.WithCompressMinBytes(1<<10),
		body.Codecs(),
		connect.WithInterceptors(s.options.Meter, failures{}, guard.New(s.stateNow), pasts{},
			silence.Server{Silence: s.backend.Silence}),
		connect.WithRecover(s.recovered),
	)
	mux.Handle(path, door.WithRight(withMedia(procedures)))
	mux.Handle(starlingv1connect.StarlingWatchProcedure, door.WithRight(streams.Together(withMedia(procedures))))
	streams.Handle(mux, procedures)
	mux.Handle("GET "+door.PathLogs, textlogs.New(procedures))
	if s.options.Blobs != nil {
		mux.Handle("GET "+door.PathBlob, s.options.Blobs)
	}
	mux.HandleFunc("GET "+door.PathHealth, s.health)
	mux.HandleFunc("GET "+door.PathReady, s.health)
	mux.HandleFunc("GET "+door.PathMetrics, s.metrics)
	mux.HandleFunc("GET "+door.PathOpenAPI, openapi.Serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		get := &http.Request{Method: http.MethodGet, Host: r.Host, URL: r.URL}
		if _, pattern := mux.Handler(get); pattern != "/" {
			w.Header().Set("Allow", http.MethodGet)
			door.WriteFailure(w, http.StatusMethodNotAllowed,
				&wire.Failure{Code: wire.Invalid, Reason: r.URL.Path + " takes GET"})
			return
		}
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

// health answers 200 if the peer serves as it should, and otherwise 503 and why, for load balancers and scripts. It
// tells details only to users.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	status, toUser := s.backend.Status(), door.CallerOf(r.Context()).IsUser()
	troubles := status.Troubles
	if _, err := s.backend.Head(r.Context()); err != nil {
		reason := "the journal does not answer: " + err.Error()
		troubles = append(troubles, report.Trouble{Kind: report.NoQuorum, Reason: reason})
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(troubles) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s %s at index %d\n", status.Self, status.Phase, status.Index)
	for _, trouble := range troubles {
		line := string(trouble.Kind)
		if toUser {
			line += ": " + trouble.Reason
		}
		fmt.Fprintln(w, line)
	}
	if !toUser {
		return
	}
	for _, warning := range status.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

// metrics answers a scrape.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if err := door.Check(r.Context(), door.PathMetrics); err != nil {
		door.WriteFailure(w, http.StatusForbidden, failureOf(r.Context(), err))
		return
	}
	state, err := s.stateAt(r.Context(), 0)
	if err != nil {
		door.WriteFailure(w, http.StatusServiceUnavailable, failureOf(r.Context(), err))
		return
	}
	scrape := &metrics.Scrape{State: state, Status: s.backend.Status(), Version: s.options.Version, Meter: s.options.Meter}
	scrape.Head, scrape.HeadError = s.backend.Head(r.Context())
	scrape.Handler().ServeHTTP(w, r)
}

// Info tells what the peer knows of itself.
func (s *server) Info(ctx context.Context, request *starlingv1.InfoRequest) (*starlingv1.InfoResponse, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	sees := s.seer(ctx)
	status := s.backend.Status()
	answer := &starlingv1.InfoResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Peer: string(status.Self), Phase: status.Phase,
		Version: s.options.Version, Rules: uint32(state.Rules),
	}
	if sees("") {
		answer.Warnings = status.Warnings // they name whatever they are about
	}
	for id, reason := range status.Waits {
		if sees(id.Slot.Job.Pool()) {
			answer.Waits = append(answer.Waits, &starlingv1.Wait{Allocation: id.String(), Reason: reason})
		}
	}
	return answer, nil
}

func (s *server) stateNow(ctx context.Context) (*cluster.State, error) { return s.stateAt(ctx, 0) }

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
