package door

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"starling/api/inflight"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/registry"
	"starling/command"
	"starling/driver/image"
	"starling/journal/connlimit"
	"starling/replica/report"
	"starling/terms"
	"starling/trust"
	"starling/trust/provider"
)

// Config says what a door is made of.
type Config struct {
	// Keys show who this node is, and who others are.
	Keys *trust.Keys
	// Listener takes TCP connections, all of them by mutual TLS; nil for none.
	Listener net.Listener
	// Socket is the path of the socket for users of this machine, "" for none; Group is the name of the one whose
	// members it lets in besides root and this process's user, "" for none.
	Socket, Group string
	// Address is where other nodes reach this one, and Names what the node is called besides its IP addresses.
	Address string
	Names   []string
	// Issuer is who signs id tokens, as outsiders know the cluster; "" for its SPIFFE id.
	Issuer string
	// SignIn says who users are that sign in, nil if they cannot.
	SignIn *provider.Provider
	// Limits are those of the connections to each of the two, the zero value for connlimit.Default.
	Limits connlimit.Limits
	// Requests returns what the open requests of a caller at an address count as; nil for the bounds of this package.
	Requests func(who *trust.Identity, address string) []inflight.Share
	// Log is told what is done for whom, and what is refused; nil for nobody.
	Log *slog.Logger
}

// Limits of those who call.
const (
	// recognizeEvery is how long somebody's request may go on who was removed.
	recognizeEvery = time.Second
	// bodyWithin bounds how long a request may take to come.
	bodyWithin = 30 * time.Second
	// endMax is how long requests may take to end when the door closes. Their contexts have ended, so it is short.
	endMax = 500 * time.Millisecond
)

// BodyBytesMax bounds a request: a job of the largest size that the cluster takes, as JSON.
const BodyBytesMax = 4 << 20

// ErrStopping ends the contexts of requests when the door closes, not the one who asked.
var ErrStopping = errors.New("this peer is stopping")

// Door is a peer's API as others find it.
type Door struct {
	config   Config
	limits   connlimit.Limits // of each listener
	requests inflight.Counter
	images   *image.Resolver
	answer   atomic.Pointer[behind]
	socket   net.Listener
	running  *http.Server
	stop     context.CancelCauseFunc
	ended    chan struct{}
	err      error
}

// Open listens, and answers what needs no peer; Answer does the rest.
func Open(config Config) (*Door, error) {
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	d := &Door{config: config, limits: cmp.Or(config.Limits, connlimit.Default()), images: image.NewResolver(),
		ended: make(chan struct{})}
	if d.config.Requests == nil {
		d.config.Requests = requestShares
	}
	if config.Socket != "" {
		var err error
		if d.socket, err = listenLocal(config.Socket, config.Group); err != nil {
			return nil, err
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	base, stop := context.WithCancelCause(context.Background())
	d.stop = stop
	d.running = &http.Server{
		Handler: d.handler(bodyWithin), Protocols: protocols, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: connectionContext,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: streamsMax, MaxReceiveBufferPerStream: unreadMax},
	}
	d.running.ErrorLog = slog.NewLogLogger(d.config.Log.Handler(), slog.LevelDebug)
	if config.Keys != nil {
		d.running.TLSConfig = config.Keys.ServerTLS()
	}
	go d.serve()
	return d, nil
}

// serve answers on all listeners until one fails or the door is closed.
func (d *Door) serve() {
	results := make(chan error, 2)
	serving := 0
	if d.socket != nil {
		serving++
		local := localListener{d.socket, localCaller(d.node(), d.config.Group)}
		go func() { results <- d.running.Serve(connlimit.New(local, d.limits, d.config.Log)) }()
	}
	if d.config.Listener != nil {
		serving++
		limited := connlimit.New(d.config.Listener, d.limits, d.config.Log)
		go func() { results <- d.running.ServeTLS(limited, "", "") }()
	}
	for ; serving > 0; serving-- {
		if err := <-results; err != nil && !errors.Is(err, http.ErrServerClosed) && d.err == nil {
			d.err = fmt.Errorf("answer requests: %w", err)
			_ = d.running.Close() // the other listener as well
		}
	}
	close(d.ended)
}

// Peer is what a door needs of the peer behind it.
type Peer interface {
	// HasRead tells whether it has read the journal to its end; before that it does not know who counts.
	HasRead() bool
	// Registry is who is known to the cluster, and whether its rules have such a registry.
	Registry() (known *registry.Registry, inForce bool)
	// State is the value, when it has come to an index.
	State(ctx context.Context, least terms.Index) (*cluster.State, error)
	// Submit appends the command and returns when the peer has folded it.
	Submit(ctx context.Context, c command.Command) (report.Receipt, error)
}

// behind is what answers behind a door.
type behind struct {
	http.Handler
	peer Peer
	// users are known where there is no peer yet to tell.
	users     *registry.Registry
	meanwhile bool
}

// Answer has requests that need a peer answered from now on; a peer of the past is nil.
func (d *Door) Answer(handler http.Handler, peer Peer) {
	d.answer.Store(&behind{Handler: handler, peer: peer})
}

// AnswerMeanwhile has requests answered until there is a peer, or Rest is called, for users who were known once. All
// else is as without a peer.
func (d *Door) AnswerMeanwhile(handler http.Handler, users *registry.Registry) {
	d.answer.Store(&behind{Handler: handler, users: users, meanwhile: true})
}

// ErrWaits is what is told as long as there is no peer.
var ErrWaits = errors.New("this peer waits for the quorum of the journal: its log tells what is missing")

// Rest has who asks told again that the peer waits.
func (d *Door) Rest() { d.answer.Store(nil) }

// node is the name of this node, "" if it is in no cluster.
func (d *Door) node() string {
	if d.config.Keys == nil {
		return ""
	}
	return d.config.Keys.Node()
}

// Address is where other nodes reach the door.
func (d *Door) Address() string { return d.config.Address }

// Done is closed when no more requests are answered; Err tells why, if nobody closed the door.
func (d *Door) Done() <-chan struct{} { return d.ended }

// Err is meant for after Done.
func (d *Door) Err() error { return d.err }

// Close ends the requests that are under way, and answers no more.
func (d *Door) Close() error {
	d.stop(ErrStopping)
	limit, cancel := context.WithTimeout(context.Background(), endMax)
	defer cancel()
	if err := d.running.Shutdown(limit); err != nil {
		_ = d.running.Close() // what is left has had its time
	}
	<-d.ended
	return d.err
}

// handler finds out who calls before anything else.
func (d *Door) handler(within time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathJoin, d.join)
	mux.HandleFunc("POST "+PathRenew, d.renew)
	mux.HandleFunc("POST "+PathToken, d.token)
	mux.HandleFunc("POST "+PathUser, d.user)
	mux.HandleFunc("POST "+PathTokens, d.tokens)
	mux.HandleFunc("POST "+PathUsers, d.users)
	mux.HandleFunc("POST "+PathRemoveToken, d.removeToken)
	mux.HandleFunc("POST "+PathRemoveUser, d.removeUser)
	mux.HandleFunc("POST "+PathRemoveNode, d.removeNode)
	mux.HandleFunc("POST "+PathCan, d.can)
	mux.HandleFunc("POST "+PathWhoAmI, d.whoAmI)
	mux.HandleFunc("POST "+PathSignIn, d.signIn)
	mux.HandleFunc("POST "+PathSignedIn, d.signedIn)
	mux.HandleFunc("POST "+PathAuthorities, d.authorities)
	mux.HandleFunc("POST "+PathRotate, d.rotate)
	mux.HandleFunc("POST "+PathRemoveAuthority, d.removeAuthority)
	mux.HandleFunc("POST "+PathAuthorityKey, d.authorityKey)
	mux.HandleFunc("POST "+PathIDTokens, d.idTokens)
	mux.HandleFunc("POST "+PathSeal, d.seal)
	mux.HandleFunc("POST "+PathPin, d.pin)
	mux.HandleFunc("GET "+PathDiscovery, d.discovery)
	mux.HandleFunc("GET "+PathJWKS, d.jwks)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if answer := d.answer.Load(); answer != nil {
			answer.ServeHTTP(w, r)
			return
		}
		WriteFailure(w, http.StatusServiceUnavailable, &wire.Failure{Code: wire.Unavailable,
			Reason: ErrWaits.Error()})
	})
	return d.withCaller(d.bounded(d.withHost(http.NewCrossOriginProtection().Handler(withBody(mux, within)))))
}

// withCaller tells all that come after who sends the request over TLS; over the socket the connection has told
// already.
func (d *Door) withCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			next.ServeHTTP(w, r)
			return
		}
		who, err := d.config.Keys.IdentityOn(r.TLS)
		if err == nil {
			err = d.recognize(&who, r.TLS)
		}
		if err != nil {
			WriteFailure(w, http.StatusForbidden, refusal(err))
			return
		}
		ctx, end := context.WithCancelCause(WithCaller(r.Context(), who))
		defer end(nil)
		defer time.AfterFunc(recognizeEvery, func() { d.recognizeAgain(ctx, r.TLS, end) }).Stop()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// recognizeAgain ends a request that goes on while who sent it was removed, or has got a lesser role.
func (d *Door) recognizeAgain(ctx context.Context, connection *tls.ConnectionState, end context.CancelCauseFunc) {
	who := CallerOf(ctx)
	had := who.Role
	err := d.recognize(&who, connection)
	if err == nil && who.Role < had {
		err = fmt.Errorf("%s has another role now: ask again", who)
	}
	switch {
	case err != nil:
		end(refusal(err))
	case ctx.Err() == nil:
		time.AfterFunc(recognizeEvery, func() { d.recognizeAgain(ctx, connection, end) })
	}
}
