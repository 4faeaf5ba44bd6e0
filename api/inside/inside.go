// Package inside asks the procedures of a peer from within the same process, in the name of who sent the request that
// is answered so: the same rights hold.
package inside

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"starling/api/v1/starlingv1connect"
)

// New returns a client of procedures. What it is asked with must have the context of a request, which knows who asks.
func New(procedures http.Handler) starlingv1connect.StarlingClient {
	return starlingv1connect.NewStarlingClient(&http.Client{Transport: within{procedures}}, "http://peer")
}

// within gives requests to a handler.
type within struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &piped{header: http.Header{}, body: writer, begun: make(chan int, 1)}
	go func() { // it ends with the context, or when the answer is read or closed
		t.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		writer.Close()
	}()
	select {
	case status := <-w.begun:
		return &http.Response{StatusCode: status, Status: strings.TrimSpace(strconv.Itoa(status)), Proto: "HTTP/1.1",
			ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Body: reader, Request: r, ContentLength: -1}, nil
	case <-r.Context().Done():
		reader.Close()
		return nil, r.Context().Err()
	}
}

// piped is an answer that is read while it is written.
type piped struct {
	header, sent http.Header
	body         io.Writer
	once         sync.Once
	begun        chan int
}

// Header implements http.ResponseWriter.
func (p *piped) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *piped) WriteHeader(status int) {
	p.once.Do(func() {
		p.sent = p.header.Clone()
		p.begun <- status
	})
}

// Write implements io.Writer.
func (p *piped) Write(data []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(data)
}

// Flush implements http.Flusher.
func (p *piped) Flush() { p.WriteHeader(http.StatusOK) }
