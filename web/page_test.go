package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/api/door"
)

const self = "127.0.0.1:4711"

// peers answers as a peer, and remembers what it was asked.
type peers struct{ asked []*http.Request }

func (p *peers) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = append(p.asked, r)
	if r.URL.Path == procedures+"Why" {
		return nil, errors.New("there is none")
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader("{}")),
		Header: http.Header{"Content-Type": {"application/json"},
			"Set-Cookie": {"a=b"}, "Access-Control-Allow-Origin": {"*"}}}, nil
}

// browser keeps what a browser keeps.
type browser struct {
	*testing.T
	page   *Page
	cookie *http.Cookie
	header string
}

func start(t *testing.T) (*browser, *peers) {
	t.Helper()
	asked := &peers{}
	p, err := newPage(self, nil, asked)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{T: t, page: p}, asked
}

// post sends what the page would send; more are headers in place of its own, "" for none.
func (b *browser) post(path, body string, more ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://"+self+path, strings.NewReader(body))
	r.Header.Set("Origin", "http://"+self)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set(sessionHeader, b.header)
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for i := 0; i < len(more); i += 2 {
		if r.Header.Set(more[i], more[i+1]); more[i+1] == "" {
			r.Header.Del(more[i])
		}
		if more[i] == "Host" {
			r.Host = more[i+1]
		}
	}
	w := httptest.NewRecorder()
	b.page.server.Handler.ServeHTTP(w, r)
	return w
}

// signIn uses a link, and tells whether that signed in.
func (b *browser) signIn(link string) bool {
	_, key, _ := strings.Cut(link, "#key=")
	w := b.post("/session", `{"key":"`+key+`"}`)
	if w.Code != http.StatusOK {
		return false
	}
	b.cookie = w.Result().Cookies()[0]
	b.header = strings.Split(w.Body.String(), `"`)[3]
	return true
}

func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, asked := start(t)
		ask := func() int { return b.post(procedures+"ListJobs", "{}").Code }
		if got := ask(); got != http.StatusUnauthorized || len(asked.asked) > 0 {
			t.Errorf("signed out: got %d, and a peer was asked %d times", got, len(asked.asked))
		}
		link := b.page.Link(LinkLife)
		if !b.signIn(link) || ask() != http.StatusOK {
			t.Error("a link does not sign in")
		}
		if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || len(c.Value) < 52 {
			t.Errorf("got the cookie %v", c)
		}
		if (&browser{T: t, page: b.page}).signIn(link) {
			t.Error("a link signs in twice")
		}
		late := b.page.Link(LinkLife)
		<-time.After(LinkLife) // of the test's own clock
		if (&browser{T: t, page: b.page}).signIn(late) {
			t.Error("a link signs in after its time")
		}
		if !b.signIn(b.page.Link(0)) {
			t.Error("a link without end does not sign in")
		}
		<-time.After(idleMax / 2)
		if got := ask(); got != http.StatusOK {
			t.Errorf("after half of the idle time: got %d", got)
		}
		<-time.After(idleMax + 1)
		if got := ask(); got != http.StatusUnauthorized {
			t.Errorf("after the idle time: got %d", got)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := start(t)
		first.signIn(first.page.Link(0))
		last := first
		for range sessionsMax {
			<-time.After(time.Second)
			last = &browser{T: t, page: first.page}
			last.signIn(first.page.Link(0))
		}
		if first.post(procedures+"ListJobs", "{}").Code != http.StatusUnauthorized ||
			last.post(procedures+"ListJobs", "{}").Code != http.StatusOK {
			t.Error("the oldest of too many sessions goes on, or the newest does not")
		}
	})
}

func TestWhoIsRefused(t *testing.T) {
	b, asked := start(t)
	b.signIn(b.page.Link(0))
	for _, c := range []struct {
		name, path string
		headers    []string
		want       int
	}{
		{"the page", "ListJobs", nil, 200},
		{"a browser that sends no Sec-Fetch-Site", "ListJobs", []string{"Sec-Fetch-Site", ""}, 200},
		{"another name", "ListJobs", []string{"Host", "example.org"}, 403},
		{"another port of this machine", "ListJobs",
			[]string{"Origin", "http://127.0.0.1:4712", "Sec-Fetch-Site", "same-site"}, 403},
		{"another page", "ListJobs", []string{"Origin", "https://example.org"}, 403},
		{"no origin", "ListJobs", []string{"Origin", ""}, 403},
		{"another site", "ListJobs", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"the cookie alone", "ListJobs", []string{sessionHeader, ""}, 401},
		{"the header alone", "ListJobs", []string{"Cookie", ""}, 401},
		{"a procedure that the page does not ask", "PutSecret", nil, 403},
		{"the same by another path", "x/../PutSecret", nil, 307},
		{"no peer", "Why", nil, 503},
	} {
		before := len(asked.asked)
		w := b.post(procedures+c.path, "{}", c.headers...)
		if w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, w.Code, w.Body, c.want)
		}
		if c.want < 500 && (len(asked.asked) > before) != (c.want == 200) {
			t.Errorf("%s: a peer was asked %d times", c.name, len(asked.asked)-before)
		}
		if w.Header().Get("Set-Cookie")+w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: a peer's header came through", c.name)
		}
	}
	last := asked.asked[0] // of the page
	if last.Header.Get("Cookie")+last.Header.Get(sessionHeader)+last.Header.Get("Origin") != "" {
		t.Errorf("a peer was told %v", last.Header)
	}
	if w := b.post(procedures+"ListJobs", strings.Repeat("x", door.BodyBytesMax+1)); w.Code != http.StatusForbidden {
		t.Errorf("too large: got %d", w.Code)
	}
}

func TestFiles(t *testing.T) {
	b, _ := start(t)
	get := func(path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "http://"+self+path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		b.page.server.Handler.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/icon.svg"} {
		w := get(path)
		if w.Code != 200 || w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: got %d %v", path, w.Code, w.Header())
		}
		if again := get(path, "If-None-Match", w.Header().Get("ETag")); again.Code != 304 || again.Body.Len() > 0 {
			t.Errorf("%s again: got %d", path, again.Code)
		}
		if zipped := get(path, "Accept-Encoding", "gzip"); zipped.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: not compressed", path)
		}
	}
	for _, path := range []string{"/web.go", "/page/app.js", "/..%2fweb.go", procedures + "ListJobs"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
}
