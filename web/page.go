package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
)

// Limits of who is signed in.
const (
	// linksMax and sessionsMax bound the links that were not used yet and the browsers that are signed in: the oldest
	// gives way.
	linksMax, sessionsMax = 16, 16
	// idleMax is how long a browser that asks nothing stays signed in.
	idleMax = 12 * time.Hour
	// headTimeout and bodyTimeout bound how long a request may take to come.
	headTimeout, bodyTimeout = 10 * time.Second, 30 * time.Second
	// stopTimeout bounds how long requests under way may take when the page is closed.
	stopTimeout = time.Second
)

// LinkLife is how long a link that a command opens may be used.
const LinkLife = time.Minute

// sum is the SHA-256 of something secret: what a browser shows is looked up by it, so that the time which that takes
// tells nothing.
type sum [sha256.Size]byte

func sumOf(secret string) sum { return sha256.Sum256([]byte(secret)) }

// session is a browser that was signed in. It shows a cookie, which no script can read, and a header, which no other
// server on this machine is sent: browsers send cookies to all ports of a machine.
type session struct {
	header sum
	used   time.Time
}

// Page shows the cluster to browsers of this machine.
//
// A link from Link signs one browser in, once. The session is bound to this process, and has the rights of the user
// who runs it: each request is judged anew by the peer that answers it.
type Page struct {
	listener net.Listener
	server   *http.Server
	// address is host and port, as browsers must name it.
	address string
	served  chan struct{}
	// closing ends when the page is closed, by close.
	closing context.Context
	close   func()

	mu sync.Mutex
	// links holds until when each may be used, sessions the browsers by their cookies.
	links    map[sum]time.Time
	sessions map[sum]*session
}

// Open serves the page at a free port of the loopback address; peer is asked in the user's name.
func Open(peer *client.Client) (*Page, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for browsers of this machine: %w", err)
	}
	p, err := newPage(listener.Addr().String(), peer, peer.Forwards())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p.listener = listener
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // it ends when the page is closed
	}()
	return p, nil
}

func newPage(address string, peer *client.Client, forwards http.RoundTripper) (*Page, error) {
	all, err := readFiles()
	if err != nil {
		return nil, err
	}
	p := &Page{address: address, served: make(chan struct{}), links: map[sum]time.Time{}, sessions: map[sum]*session{}}
	p.closing, p.close = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.Handle("GET /", all)
	mux.Handle("GET "+shellPath, p.fromPage(p.signedInBy(pageOf, newShells(p.closing, peer.Exec))))
	mux.Handle("POST /session", p.fromPage(http.HandlerFunc(p.signIn)))
	mux.Handle("POST /plan", p.fromPage(p.signedIn(answers(planner{peer}.file))))
	mux.Handle("POST /whoami", p.fromPage(p.signedIn(answers(planner{peer}.whoAmI))))
	mux.Handle("POST /scale", p.fromPage(p.signedIn(answers(planner{peer}.scale))))
	mux.Handle("POST "+procedures, p.fromPage(p.signedIn(newForward(forwards))))
	p.server = &http.Server{Handler: p.ours(secured(mux)), ReadHeaderTimeout: headTimeout, MaxHeaderBytes: 32 << 10}
	return p, nil
}

// Link returns an address that signs in the first browser that opens it, within the time, or
// whenever that is if it is 0.
func (p *Page) Link(life time.Duration) string {
	key := rand.Text() + rand.Text() // 256 bits and a little more
	until := time.Time{}
	if life > 0 {
		until = time.Now().Add(life)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.links) >= linksMax {
		delete(p.links, oldest(p.links, func(t time.Time) time.Time { return t }))
	}
	p.links[sumOf(key)] = until
	return "http://" + p.address + "/#key=" + key
}

// oldest returns the key of what has the earliest time.
func oldest[V any](all map[sum]V, at func(V) time.Time) (key sum) {
	first := true
	var least time.Time
	for k, v := range all {
		if first || at(v).Before(least) {
			key, least, first = k, at(v), false
		}
	}
	return key
}

// Close ends the page, and with it all sessions.
func (p *Page) Close() error {
	p.close()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if p.server.Shutdown(ctx) != nil { // streams go on for as long as they are let
		_ = p.server.Close()
	}
	<-p.served
	return nil
}

// ours refuses what names another host than this page: the name of another page can lead here.
func (p *Page) ours(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != p.address {
			refuse(w, "this page is called http://"+p.address)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromPage refuses what a page from elsewhere has sent, or something that does not say whose page it is.
func (p *Page) fromPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if r.Header.Get("Origin") != "http://"+p.address || site != "" && site != "same-origin" {
			refuse(w, "this is for the page itself")
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // every connection of a server has deadlines
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, door.BodyBytesMax))
		if err != nil {
			refuse(w, "the request is too large, or took too long to come")
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		next.ServeHTTP(w, withBody(r, body))
	})
}

// cookie names the cookie of this page: browsers send those of all ports.
func (p *Page) cookie() string {
	_, port, _ := net.SplitHostPort(p.address)
	return "starling-" + port
}

// shellPath is where a WebSocket begins a session with a program.
const shellPath = "/shell"

// sessionHeader is what the page shows beside its cookie.
const sessionHeader = "Starling-Page"

// signIn takes the key of a link, once.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	asked := struct{ Key string }{}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || !p.take(asked.Key) {
		refuse(w, "this link was used already, or is too old: starling ui makes another")
		return
	}
	cookie, header := rand.Text()+rand.Text(), rand.Text()+rand.Text()
	p.mu.Lock()
	for len(p.sessions) >= sessionsMax {
		delete(p.sessions, oldest(p.sessions, func(s *session) time.Time { return s.used }))
	}
	p.sessions[sumOf(cookie)] = &session{header: sumOf(header), used: time.Now()}
	p.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: p.cookie(), Value: cookie, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{"page": header}) // it fails only if who asked has gone
}

// take tells whether the key is of a link that counts, which it does not from now on.
func (p *Page) take(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, known := p.links[sumOf(key)]
	delete(p.links, sumOf(key))
	return known && (until.IsZero() || time.Now().Before(until))
}

// signedIn refuses who was not signed in.
func (p *Page) signedIn(next http.Handler) http.Handler {
	return p.signedInBy(func(r *http.Request) string { return r.Header.Get(sessionHeader) }, next)
}

// signedInBy does so where the second secret stands elsewhere.
func (p *Page) signedInBy(secret func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(p.cookie())
		if err != nil || !p.knows(cookie.Value, secret(r)) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(door.FailureJSON(&wire.Failure{Code: "signed_out",
				Reason: "this browser is not signed in: starling ui opens the page anew"}))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows tells whether a browser that shows these is signed in, and notes that it was there.
func (p *Page) knows(cookie, header string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := sumOf(cookie)
	s := p.sessions[key]
	switch {
	case s == nil || s.header != sumOf(header):
		return false
	case time.Since(s.used) > idleMax:
		delete(p.sessions, key)
		return false
	}
	s.used = time.Now()
	return true
}

// refuse answers what is not let in.
func refuse(w http.ResponseWriter, reason string) {
	door.WriteFailure(w, http.StatusForbidden, &wire.Failure{Code: wire.Denied, Reason: reason})
}
