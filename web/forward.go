package web

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"starling/api/door"
	"starling/api/silence"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
)

// procedures is the path below which the procedures are.
const procedures = "/" + starlingv1connect.StarlingName + "/"

// passed are the procedures that the page asks. What is not here it cannot ask, whatever the user may do.
var passed = strings.Fields(`ListPeers ListJobs JobStatus JobHistory JobDiff Why ListPools PoolStatus Quorum Info Rules
	Watch TailJournal Diff Logs InstanceStats Series
	KillJob RestartJob SuspendJob RevertJob SteerUpdate SubmitJob DrainNode ChangePools`)

// headersTo and headersFrom are the headers that go on to a peer, and come back from it.
var (
	headersTo   = []string{"Content-Type", "Connect-Protocol-Version", wire.AtHeader}
	headersFrom = []string{"Content-Type", "Content-Length", silence.Header}
)

// newForward passes requests on to a peer.
func newForward(peers http.RoundTripper) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: peers, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header = kept(r.In.Header, headersTo)
			r.Out.Header.Set("User-Agent", "starling-page")
			r.Out.GetBody = r.In.GetBody
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header = kept(r.Header, headersFrom)
			r.Header.Set("Cache-Control", "no-store")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			door.WriteFailure(w, http.StatusServiceUnavailable, &wire.Failure{Code: wire.Unavailable,
				Reason: "no peer answers: " + err.Error()})
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(passed, strings.TrimPrefix(r.URL.Path, procedures)) {
			refuse(w, "the page does not ask "+r.URL.Path)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// kept returns those headers that are named.
func kept(all http.Header, names []string) http.Header {
	some := http.Header{}
	for _, name := range names {
		if values := all.Values(name); len(values) > 0 {
			some[http.CanonicalHeaderKey(name)] = values
		}
	}
	return some
}

// withBody returns the request with a body that can be sent again.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength = int64(len(body))
	return r
}
