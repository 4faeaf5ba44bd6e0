package api

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"starling/api/wire"
)

// Listen listens on the address. Until peers know who asks, whoever reaches the port may run programs: so it refuses
// all but loopback, unless insecure.
func Listen(address string, insecure bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: write host:port, such as 127.0.0.1:7460", address, err)
	}
	if !insecure && !isLoopback(host) {
		return nil, fmt.Errorf("listen on %s: it is not loopback, and whoever reaches it could run programs here: "+
			"use 127.0.0.1, or pass --insecure if all who can reach this network are trusted", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// withHost refuses requests over loopback that name another host: a page in a browser on this machine can have its
// own name lead here, and would act with the rights of who sits before it.
func withHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		_, notIP := netip.ParseAddr(host)
		if local != nil && isLoopbackAddress(local) && notIP != nil && !isLoopback(host) &&
			!strings.HasSuffix(host, ".localhost") {
			writeFailure(w, http.StatusForbidden, &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf(
				"this peer listens on loopback and is not %q: ask for localhost or an IP address", host)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopbackAddress(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// withMedia says what to send to those who send a body of another kind, as curl does unless told.
func withMedia(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		known := kind == "application/json" || kind == "application/proto" ||
			strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect+")
		if r.Method == http.MethodPost && (err != nil || !known) {
			writeFailure(w, http.StatusUnsupportedMediaType, &wire.Failure{Code: wire.Invalid,
				Reason: "send JSON and say so: curl --json BODY, or the header Content-Type: application/json"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withPatience lets go of a reader who takes nothing for too long, and would hold a stream for ever. Only writing has
// a deadline: a stream may be quiet for as long as it likes.
func withPatience(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patient := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
		patient.within(0) // the connection may have carried another request
		next.ServeHTTP(patient, r)
		patient.within(patience) // for what is still to be flushed
	})
}

type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// within sets the time for what is written from now on, 0 for any. That it cannot be set only means that a stalled
// reader is kept.
func (p *patientWriter) within(patience time.Duration) {
	deadline := time.Time{}
	if patience > 0 {
		deadline = time.Now().Add(patience)
	}
	_ = p.control.SetWriteDeadline(deadline)
}

// Write gives every piece its own time.
func (p *patientWriter) Write(data []byte) (int, error) {
	p.within(p.patience)
	defer p.within(0)
	return p.ResponseWriter.Write(data)
}

// Flush sends what was written; an error shows again with the next Write.
func (p *patientWriter) Flush() { _ = p.FlushError() }

// FlushError is for http.ResponseController.
func (p *patientWriter) FlushError() error {
	p.within(p.patience)
	defer p.within(0)
	return p.control.Flush()
}

// Unwrap is for http.ResponseController.
func (p *patientWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
