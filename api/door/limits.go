package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// held is a listener that bounds the connections of each client, and knows who they are of where the kernel tells.
type held struct {
	net.Listener
	max    int
	caller func(*net.UnixConn) caller
	log    *slog.Logger

	mu      sync.Mutex
	open    map[string]int
	telling rate.Sometimes
}

func newHeld(listener net.Listener, most int, who func(*net.UnixConn) caller, log *slog.Logger) *held {
	return &held{Listener: listener, max: most, caller: who, log: log, open: map[string]int{},
		telling: rate.Sometimes{First: 1, Interval: refusalsToldEvery}}
}

// refusalsToldEvery is the pause between two lines of the log about connections that were closed: there can be many.
const refusalsToldEvery = time.Minute

// heldConn is a connection that counts until it is closed.
type heldConn struct {
	net.Conn
	caller  caller
	release func()
}

// Close lets its client have another.
func (c *heldConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// Accept returns the next connection of a client that has not too many already; those beyond are closed at once.
func (l *held) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &heldConn{Conn: connection}
		client, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
		if local, isLocal := connection.(*net.UnixConn); isLocal {
			c.caller = l.caller(local)
			client = c.caller.Name
		}
		c.release = sync.OnceFunc(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.open[client]--; l.open[client] == 0 {
				delete(l.open, client)
			}
		})
		l.mu.Lock()
		l.open[client]++
		full := l.open[client] > l.max
		l.mu.Unlock()
		if !full {
			return c, nil
		}
		_ = c.Close() // who asked cannot be told
		l.telling.Do(func() {
			l.log.Warn("connections of a client are closed: it has as many as one may have", "client", client, "has", l.max)
		})
	}
}

// withHost refuses requests that name another host: a page in a browser can have its own name lead here, and would
// act with the rights of who sits before it. A socket has no name.
func (d *Door) withHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		_, notIP := netip.ParseAddr(host)
		isOurs := notIP == nil || strings.EqualFold(host, "localhost") || strings.HasSuffix(host, ".localhost") ||
			slices.ContainsFunc(d.config.Names, func(name string) bool { return strings.EqualFold(host, name) })
		if r.TLS != nil && !isOurs {
			WriteFailure(w, http.StatusForbidden, &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
				"this node is not called %q: ask by its IP address, or let its agent --advertise that name", host)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withBody bounds how large a request may be and how long it may take to come. What is answered may take as long as
// it likes: the deadline ends with the last byte of the request. A session of one who may have any goes on for as
// long as both sides like, a message at a time.
func withBody(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const session = starlingv1connect.StarlingExecProcedure
		if r.URL.Path == session && Check(r.Context(), session) == nil {
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > BodyBytesMax {
			WriteFailure(w, http.StatusRequestEntityTooLarge, tooLarge())
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(within)) // every connection of a server has deadlines
			received := &body{ReadCloser: http.MaxBytesReader(w, r.Body, BodyBytesMax), whole: func() {
				_ = control.SetReadDeadline(time.Time{})
			}}
			r.Body, w = received, &bodyWriter{w, received}
		}
		next.ServeHTTP(w, r)
	})
}

func tooLarge() *wire.Failure {
	return &wire.Failure{Code: wire.Exhausted, Reason: fmt.Sprintf("a request must have at most %d bytes", BodyBytesMax)}
}

// body tells when all of a request has come, and whether it was too large.
type body struct {
	io.ReadCloser
	whole    func()
	tooLarge bool
}

// Read returns what has come.
func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		b.whole()
	case errors.As(err, &large):
		b.tooLarge = true
	}
	return n, err
}

// bodyWriter gives the answer to a request that was too large its status, whatever read it.
type bodyWriter struct {
	http.ResponseWriter
	body *body
}

// WriteHeader begins the answer.
func (w *bodyWriter) WriteHeader(status int) {
	if w.body.tooLarge && status == http.StatusTooManyRequests {
		status = http.StatusRequestEntityTooLarge
	}
	w.ResponseWriter.WriteHeader(status)
}

// Flush sends what was written; an error shows again with the next Write.
func (w *bodyWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *bodyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteFailure answers a plain HTTP request, in the form in which the procedures' errors are written as JSON.
func WriteFailure(w http.ResponseWriter, status int, failure *wire.Failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(FailureJSON(failure)) // it fails only if who asked has gone
}

// StatusOf is the status of HTTP for a code.
func StatusOf(code wire.Code) int {
	switch code {
	case wire.Invalid:
		return http.StatusBadRequest
	case wire.NotFound:
		return http.StatusNotFound
	case wire.Denied:
		return http.StatusForbidden
	case wire.Exhausted:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// FailureJSON is that form.
func FailureJSON(failure *wire.Failure) any {
	return failureJSON{failure.Code, failure.Reason}
}

type failureJSON struct {
	Code    wire.Code `json:"code"`
	Message string    `json:"message"`
}
