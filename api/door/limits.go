package door

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"starling/api/inflight"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/journal/connlimit"
	"starling/terms/access"
	"starling/trust"
)

// ofCallerMax bounds the connections of one user or node at a time, ofInstanceMax those of one instance.
const (
	ofCallerMax   = 512
	ofInstanceMax = 128
)

// places are what the connections of somebody who has shown credentials count as. Users and instances leave some of the
// peer's to others.
func places(who *trust.Identity, all int) []connlimit.Share {
	switch who.Kind {
	case access.OfNode:
		return []connlimit.Share{{Key: who.Subject().String(), Max: ofCallerMax}}
	case access.OfInstance:
		job := path.Dir(path.Dir(who.Name))
		return []connlimit.Share{{Key: who.Subject().String(), Max: ofInstanceMax}, {Key: "job " + job, Max: all / 4},
			{Key: "all instances together", Max: all / 2}}
	}
	return []connlimit.Share{{Key: "user " + who.Name, Max: min(ofCallerMax, all/2)},
		{Key: "all users together", Max: all * 3 / 4}}
}

// Bounds of the requests of one caller that are open at a time, and of what has come of their bodies.
const (
	requestsOfOne, bytesOfOne       = 256, 32 << 20
	requestsTogether, bytesTogether = 1024, 128 << 20
	// streamsMax bounds the requests of one connection: browsers ask for a hundred.
	streamsMax = 100
	// unreadMax bounds what has come of a body before it is read.
	unreadMax = 256 << 10
)

// requestShares are what the open requests of a caller count as. Those of nodes and of admins at the socket have no
// bound, so that what the cluster and its operators do goes on whatever others ask.
func requestShares(who *trust.Identity, address string) []inflight.Share {
	one := func(key string) inflight.Share {
		return inflight.Share{Key: key, Requests: requestsOfOne, Bytes: bytesOfOne}
	}
	all := func(key string) inflight.Share {
		return inflight.Share{Key: key, Requests: requestsTogether, Bytes: bytesTogether}
	}
	switch who.Kind {
	case access.OfNode, access.OfLocal:
		return nil
	case access.OfInstance:
		return []inflight.Share{{Key: who.Subject().String(), Requests: requestsOfOne / 4, Bytes: bytesOfOne / 4},
			one("job " + path.Dir(path.Dir(who.Name))), all("all instances together")}
	case access.OfUser:
		return []inflight.Share{one("user " + who.Name), all("all users together")}
	}
	return []inflight.Share{one("address " + address), all("all without credentials")}
}

// requestKey finds what a request counts as in its context.
type requestKey struct{}

// bounded has requests answered that have a place for their connection, and one of their own.
func (d *Door) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.place(w, r) {
			return
		}
		who := CallerOf(r.Context())
		address := ""
		if connection, ok := r.Context().Value(connectionKey{}).(*connlimit.Conn); ok {
			address = connection.Address()
		}
		request, err := d.requests.Begin(d.config.Requests(&who, address)...)
		if err != nil {
			writeExhausted(w, r, err)
			return
		}
		defer request.End()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, request)))
	})
}

// writeExhausted answers a request that has no place, in the form that the protocol of a procedure has.
func writeExhausted(w http.ResponseWriter, r *http.Request, err error) {
	failure := &wire.Failure{Code: wire.Exhausted, Reason: err.Error()}
	protocol := connect.NewErrorWriter()
	if strings.HasPrefix(r.URL.Path, "/"+starlingv1connect.StarlingName+"/") && protocol.IsSupported(r) {
		_ = protocol.Write(w, r, failure.Wire()) // it fails only if who asked has gone
		return
	}
	WriteFailure(w, http.StatusTooManyRequests, failure)
}

// connectionKey finds the connection of a request in its context.
type connectionKey struct{}

// connectionContext is the context of all requests of a connection.
func connectionContext(ctx context.Context, connection net.Conn) context.Context {
	if secure, ok := connection.(*tls.Conn); ok {
		connection = secure.NetConn()
	}
	counted, ok := connection.(*connlimit.Conn)
	if !ok {
		return ctx
	}
	if local, ok := counted.Conn.(*localConn); ok {
		ctx = context.WithValue(ctx, callerKey{}, local.caller)
	}
	return context.WithValue(ctx, connectionKey{}, counted)
}

// place gives the connection of a request a place of who calls, if that has shown credentials. Where there is none it
// answers why, and tells false.
func (d *Door) place(w http.ResponseWriter, r *http.Request) bool {
	who, _ := r.Context().Value(callerKey{}).(caller)
	connection, ok := r.Context().Value(connectionKey{}).(*connlimit.Conn)
	if !ok || who.refusal != "" || who.Kind == access.OfAnyone {
		return true
	}
	err := connection.Known(places(&who.Identity, d.limits.Known)...)
	if err != nil {
		w.Header().Set("Connection", "close")
		writeExhausted(w, r, err)
	}
	return err == nil
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
			request, _ := r.Context().Value(requestKey{}).(*inflight.Request)
			received := &body{ReadCloser: http.MaxBytesReader(w, r.Body, BodyBytesMax), request: request, whole: func() {
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
	request  *inflight.Request
	whole    func()
	tooLarge bool
}

// Read returns what has come, as long as the caller's requests may hold more.
func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if full := b.request.Take(n); full != nil {
		failure := &wire.Failure{Code: wire.Exhausted, Reason: full.Error()}
		return 0, errors.Join(failure, failure.Wire()) // for procedures, and for what this package answers
	}
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
