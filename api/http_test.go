package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// exchange sends one request over plain HTTP/1.1.
func exchange(t *testing.T, method, url, body string, header ...string) (status int, kind, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	response, err := plain().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(text)
}

const procedures = "/starling.v1.Starling/"

func TestPlainJSON(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t)) + procedures
	job := `{"request_id":"r1","spec":{"name":"web","type":"batch","tasks":[{"name":"main","instances":1,"command":["true"]}]}}`
	for range 2 {
		status, _, answer := exchange(t, "POST", url+"SubmitJob", job, "Content-Type", "application/json")
		got := struct{ Index, Job string }{}
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 200 || got.Job != "web" || got.Index == "" {
			t.Errorf("got %d %s, %v", status, answer, err)
		}
	}
	status, _, answer := exchange(t, "POST", url+"ListJobs", "{}", "Content-Type", "application/json; charset=utf-8")
	got := struct {
		Jobs []struct {
			Name           string
			Version        int
			SubmittedIndex string `json:"submitted_index"`
			Counts         struct{ Desired, Running int }
		}
		NextPageToken string `json:"next_page_token"`
	}{NextPageToken: "missing"}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 200 || len(got.Jobs) != 1 ||
		got.Jobs[0].SubmittedIndex != "7" || got.Jobs[0].Version != 1 || got.NextPageToken != "" {
		t.Errorf("got %d %s, %v", status, answer, err)
	}
	status, _, answer = exchange(t, "GET", url+"Info?connect=v1&encoding=json&message=%7B%7D", "")
	if status != 200 || !strings.Contains(answer, "a~1") {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestBadRequests(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t))
	wide := strings.Repeat("x", door.BodyBytesMax)
	tasks := `{"spec":{"name":"j","type":"batch","tasks":[{"name":"t","instances":1,"command":["x"]%s}]}}`
	isJSON := "application/json"
	cases := []struct {
		name, path, body, kind string
		status                 int
		want                   string
	}{
		{"empty body", "SubmitJob", "", isJSON, 400, "the body is empty: send a JSON object, at least {}"},
		{"no JSON", "SubmitJob", "{", isJSON, 400, "the body is not a SubmitJobRequest"},
		{"JSON of another shape", "SubmitJob", "[]", isJSON, 400, "the body is not a SubmitJobRequest"},
		{"unknown field", "SubmitJob", `{"spec":{"nam":"j"}}`, isJSON, 400, `unknown field \"nam\"`},
		{"wrong type", "SubmitJob", `{"spec":{"name":7}}`, isJSON, 400, "invalid value for string field name: 7"},
		{"number out of range", "SubmitJob", fmt.Sprintf(tasks, `,"stop_grace_millis":4294967296`), isJSON, 400,
			"field stopGraceMillis: 4294967296"},
		{"no UTF-8", "SubmitJob", "{\"spec\":{\"name\":\"\xff\"}}", isJSON, 400, "invalid UTF-8"},
		{"too large", "SubmitJob", `{"request_id":"` + wide + `"}`, isJSON, 413, "a request must have at most 4194304 bytes"},
		{"no job", "SubmitJob", "{}", isJSON, 400, "the request holds no job: spec must not be absent"},
		{"empty job", "SubmitJob", `{"spec":{}}`, isJSON, 400,
			`job \"\": job must not be empty (and 2 more, see the details)`},
		{"bad port", "SubmitJob", fmt.Sprintf(tasks, `,"ports":[{"name":"p","number":70000}]`), isJSON, 400,
			"tasks[0].ports[0].number must be at most 65535, is 70000"},
		{"long request id", "SubmitJob", strings.Replace(fmt.Sprintf(tasks, ""), "{", `{"request_id":"`+wide[:65]+`",`, 1),
			isJSON, 400, "request_id must have at most 64 bytes"},
		{"too much text", "SubmitJob", fmt.Sprintf(tasks, `,"user":"`+wide[:65537]+`"`), isJSON, 400,
			"tasks[0].user must have at most 65536 bytes"},
		{"field twice", "SubmitJob", fmt.Sprintf(tasks, `,"name":"u"`), isJSON, 400, `duplicate field \"name\"`},
		{"no job's name", "KillJob", `{"job":"a b"}`, isJSON, 400, "job must be of letters, digits"},
		{"no such job", "KillJob", `{"job":"nope"}`, isJSON, 404, "nope"},
		{"no such job to see", "JobStatus", `{"job":"nope"}`, isJSON, 404, "there is no job"},
		{"no such job to explain", "Why", `{"job":"nope"}`, isJSON, 404, "there is no job"},
		{"page too large", "ListJobs", `{"page_size":1001}`, isJSON, 400, "page_size must be at most 1000, is 1001"},
		{"bad page of peers", "ListPeers", `{"page_token":"-1"}`, isJSON, 400,
			"page_token must be the next_page_token of an answer"},
		{"negative index", "Info", `{"min_index":-1}`, isJSON, 400, "field minIndex: -1"},
		{"no such procedure", "Submit", "{}", isJSON, 404, "there is no procedure /starling.v1.Starling/Submit"},
		{"a form", "SubmitJob", "a=b", "application/x-www-form-urlencoded", 415, "send JSON and say so"},
		{"no kind", "SubmitJob", "{}", "", 415, "send JSON and say so"},
		{"garbage as protobuf", "SubmitJob", "\xff\xff\xff", "application/proto", 400, "invalid_argument"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, _, answer := exchange(t, "POST", url+procedures+c.path, c.body, "Content-Type", c.kind)
			answer = strings.ReplaceAll(answer, "\u00a0", " ") // protobuf's errors vary their spaces on purpose
			if status != c.status || !strings.Contains(answer, c.want) || strings.Contains(answer, "goroutine") {
				t.Errorf("got %d %.500s\nwant %d with %s", status, answer, c.status, c.want)
			}
		})
	}
	if got := len(a.entries); got != 7 { // KillJob of what is not there is refused by the fold
		t.Errorf("got %d entries, want one more than the six of the beginning", got)
	}
}

func TestProblemsComeBack(t *testing.T) {
	a, _ := pair()
	_, _, answer := exchange(t, "POST", wire.URL(a.serve(t))+procedures+"SubmitJob", `{"spec":{"name":"j"}}`,
		"Content-Type", "application/json")
	got := struct {
		Code    string
		Details []struct {
			Debug struct {
				Code     string
				Problems []struct{ Path, Reason string }
			}
		}
	}{}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Details) != 1 || got.Details[0].Debug.Code != "invalid" || len(got.Details[0].Debug.Problems) != 2 ||
		got.Details[0].Debug.Problems[1].Path != "tasks" {
		t.Errorf("got %s", answer)
	}
}

func TestPages(t *testing.T) {
	a, _ := pair()
	a.status.Warnings = []string{"no cgroups here"}
	url := wire.URL(a.serve(t))
	if status, _, answer := exchange(t, "GET", url+"/healthz", ""); status != 200 ||
		answer != "a~1 member at index 6\nwarning: no cgroups here\n" {
		t.Errorf("got %d %s", status, answer)
	}
	if status, _, answer := exchange(t, "GET", url+"/what", ""); status != 404 ||
		!strings.Contains(answer, "nothing is at GET /what: try GET /healthz") {
		t.Errorf("got %d %s", status, answer)
	}
}

// TestHealth asks a peer that does not serve as it should, as a user and as one of whom nothing is known.
func TestHealth(t *testing.T) {
	cases := []struct {
		name     string
		troubles []report.Trouble
		failure  error
		status   int
		want     string
	}{
		{"well", nil, nil, 200, "a~1 member at index 6\n"},
		{"joining", []report.Trouble{{Kind: report.NotMember, Reason: "it is joining"}}, nil, 503,
			"a~1 member at index 6\nnot a member: it is joining\n"},
		{"diverged and full", []report.Trouble{{Kind: report.Diverged, Reason: "x"}, {Kind: report.JournalFull, Reason: "y"}},
			nil, 503, "a~1 member at index 6\ndiverged: x\njournal full: y\n"},
		{"no quorum, although nothing is to be written", nil, errors.New("no leader"), 503,
			"a~1 member at index 6\nno quorum: the journal does not answer: no leader\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, _ := pair()
			a.status.Troubles, a.failure = c.troubles, c.failure
			url := wire.URL(a.serve(t))
			for _, path := range []string{"/healthz", "/readyz"} {
				if status, _, answer := exchange(t, "GET", url+path, ""); status != c.status || answer != c.want {
					t.Errorf("%s: got %d %q, want %d %q", path, status, answer, c.status, c.want)
				}
			}
			answer := httptest.NewRecorder()
			NewServer(a, Options{}).ServeHTTP(answer, httptest.NewRequest("GET", "/healthz", nil))
			if text := answer.Body.String(); answer.Code != c.status || c.status == 503 && strings.Contains(text, ": ") {
				t.Errorf("anyone is told %d %q", answer.Code, text)
			}
		})
	}
}

// TestMetrics scrapes two peers, which tell the same of the cluster.
func TestMetrics(t *testing.T) {
	a, b := pair()
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	var told []string
	for _, p := range []*peer{a, b} {
		status, _, answer := exchange(t, "GET", wire.URL(p.serve(t))+"/metrics", "")
		if status != 200 || !strings.Contains(answer, "\nstarling_index 7\n") ||
			!strings.Contains(answer, "\nstarling_peer_build_info{version=\"v0\"} 1\n") {
			t.Fatalf("got %d %s", status, answer)
		}
		told = append(told, answer)
	}
	if told[0] != told[1] {
		t.Errorf("got %s and %s", told[0], told[1])
	}
}

// TestRequestsAreCounted asks well, badly and for a stream.
func TestRequestsAreCounted(t *testing.T) {
	a, _ := pair()
	url, asJSON := wire.URL(a.serve(t)), []string{"Content-Type", "application/json"}
	exchange(t, "POST", url+"/starling.v1.Starling/Info", "{}", asJSON...)
	exchange(t, "POST", url+"/starling.v1.Starling/Info", "{}", asJSON...)
	exchange(t, "POST", url+"/starling.v1.Starling/JobStatus", `{"job": "gone"}`, asJSON...)
	exchange(t, "GET", url+"/v1/logs?of=gone.main[0]", "")
	_, _, answer := exchange(t, "GET", url+"/metrics", "")
	for _, want := range []string{
		`starling_peer_requests_total{code="ok",method="Info"} 2`, `starling_peer_request_seconds_count{method="Info"} 2`,
		`starling_peer_requests_total{code="not_found",method="JobStatus"} 1`,
		`starling_peer_requests_total{code="not_found",method="Logs"} 1`,
	} {
		if !strings.Contains(answer, "\n"+want+"\n") {
			t.Errorf("no line %s in %s", want, answer)
		}
	}
}

// events opens the stream and returns a function that reads its next line.
func events(t *testing.T, url string, header ...string) (response *http.Response, next func() string,
	leave context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err = plain().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return response, func() string {
		if !lines.Scan() {
			return fmt.Sprint("end ", lines.Err())
		}
		return lines.Text()
	}, cancel
}

func TestJournalAsServerSentEvents(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t)) + "/v1/journal"
	response, next, leave := events(t, url+"?from=6&follow=true", "Accept", "text/event-stream")
	defer leave()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got %s", got)
	}
	a.add("a~1", &command.TellTime{})
	for _, want := range []string{"id: 6", `data: {`, "", "id: 7", `data: {`, ""} {
		got := next()
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_, next, leave = events(t, url, "Accept", "text/event-stream", "Last-Event-ID", "6")
	defer leave()
	if got := next(); got != "id: 7" {
		t.Errorf("after 6: got %q, want entry 7", got)
	}
}

func TestJournalAsLines(t *testing.T) {
	a, _ := pair()
	a.oldest = 6
	response, next, leave := events(t, wire.URL(a.serve(t))+"/v1/journal?from=2")
	defer leave()
	if got := response.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("got %s", got)
	}
	got := struct {
		Oldest string `json:"oldest_index"`
		Entry  struct {
			Index, Writer string
			Commands      []struct{ Text string }
		}
	}{}
	if err := json.Unmarshal([]byte(next()), &got); err != nil || got.Oldest != "6" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(next()), &got); err != nil || got.Entry.Index != "6" || got.Entry.Writer != "b~1" ||
		got.Entry.Commands[0].Text != "b~1 offers 4 cpu, 8Gi memory, 100Gi disk, 1 gpu T4" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := next(); got != "end <nil>" {
		t.Errorf("got %s, want the end: nothing follows", got)
	}
}

// TestStreamsRefuse asks for streams in ways that mean nothing, or something else than was meant.
func TestStreamsRefuse(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t))
	cases := []struct{ query, want string }{
		{"/v1/journal?from=x", `from must be an index of the journal, such as 4711, is \"x\"`},
		{"/v1/journal?from=-1", `from must be an index of the journal, such as 4711, is \"-1\"`},
		{"/v1/journal?from=99999999999999999999", "from must be an index"},
		{"/v1/journal?after=3", `unknown parameter \"after\": there are min_index, from, last and follow`},
		{"/v1/events?from=3",
			`unknown parameter \"from\": there are min_index, after, kinds, job, pool, node, labels, once and known`},
		{"/v1/events?after=1&after=2", `after must be given once, is \"1,2\"`},
		{"/v1/events?once=1", `once must be true or false, is \"1\"`},
		{"/v1/events?labels=app", `labels must be NAME=VALUE, is \"app\"`},
		{"/v1/events?kinds=job,alloc",
			`kinds must be of pool, node, job, update, instance, endpoint, is \"alloc\"`},
	}
	for _, c := range cases {
		status, kind, answer := exchange(t, "GET", url+c.query, "")
		if status != 400 || kind != "application/json" || !strings.Contains(answer, c.want) {
			t.Errorf("%s: got %d %s %s", c.query, status, kind, answer)
		}
	}
	status, _, answer := exchange(t, "GET", url+"/v1/events", "", "Last-Event-ID", "x")
	if status != 400 || !strings.Contains(answer, "Last-Event-ID must be the id of an event") {
		t.Errorf("got %d %s", status, answer)
	}
	others := []struct {
		method, path string
		status       int
		want         string
	}{
		{"POST", "/v1/events", 405, "/v1/events takes GET"},
		{"PUT", "/v1/endpoints/web", 405, "takes GET"},
		{"GET", "/v1/endpoints/nosuch", 404, `there is no job \"nosuch\"`},
		{"GET", "/v1/journal?from=999999", 404, "index 999999 is in the future: the newest that this peer has folded is"},
		{"GET", "/starling.v1.Starling/Info", 405, "takes POST with JSON"},
		{"GET", "/starling.v1.Starling/Nothing", 404, "there is no procedure"},
	}
	for _, c := range others {
		status, kind, answer := exchange(t, c.method, url+c.path, "")
		if status != c.status || kind != "application/json" || !strings.Contains(answer, c.want) {
			t.Errorf("%s %s: got %d %s %s", c.method, c.path, status, kind, answer)
		}
	}
}

// TestEventsEnd looks at what becomes of a stream when its reader goes, when the peer fails, and when the server
// ends.
func TestEventsEnd(t *testing.T) {
	t.Run("reader goes", func(t *testing.T) {
		a, _ := pair()
		watched := &leaver{peer: a, left: make(chan error, 1)}
		_, next, leave := events(t, wire.URL(serveHandler(t, NewServer(watched, Options{})))+"/v1/events")
		next()
		leave()
		select {
		case err := <-watched.left:
			if err != context.Canceled {
				t.Errorf("got %v", err)
			}
		case <-within(t).Done():
			t.Error("the stream goes on without a reader")
		}
	})
	t.Run("peer fails", func(t *testing.T) {
		a, _ := pair()
		address := a.serve(t)
		a.failure = fmt.Errorf("this peer has stopped")
		status, _, answer := exchange(t, "GET", wire.URL(address)+"/v1/events", "")
		if want := `{"code":"unavailable","message":"this peer has stopped"}`; status != 503 || !strings.Contains(answer, want) {
			t.Errorf("got %d %s, want %s", status, answer, want)
		}
	})
}

// leaver tells when a follower left.
type leaver struct {
	*peer
	left chan error
}

func (l *leaver) Follow(ctx context.Context, from terms.Index, visit func(*report.Folded) error) error {
	err := l.peer.Follow(ctx, from, visit)
	l.left <- err
	return err
}

// TestStalledReaders lets go of readers who take nothing.
func TestStalledReaders(t *testing.T) {
	cases := []struct {
		name string
		open func(t *testing.T, address string)
	}{
		{"events over HTTP/1.1", func(t *testing.T, address string) {
			connection, err := net.Dial("unix", strings.TrimPrefix(address, wire.UnixPrefix))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { connection.Close() })
			fmt.Fprint(connection, "GET /v1/journal?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}},
		{"a procedure over HTTP/2", func(t *testing.T, address string) {
			by := wire.Client(nil)
			answers, err := wire.Peer(by, address).TailJournal(within(t), &starlingv1.TailJournalRequest{Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { answers.Close(); by.CloseIdleConnections() })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, _ := pair()
			watched := &leaver{peer: a, left: make(chan error, 1)}
			s := newServer(watched, Options{})
			s.readerTimeout = 50 * time.Millisecond
			c.open(t, serveHandler(t, s.handler()))
			feed(t, a, watched.left)
		})
	}
}

// feed adds large entries until the follower left: the buffers between take some.
func feed(t *testing.T, a *peer, left <-chan error) {
	t.Helper()
	large := make([]command.Command, 2000)
	for i := range large {
		large[i] = &command.KillJob{Job: "there-is-no-job-with-this-name"}
	}
	ctx := within(t)
	for {
		select {
		case <-left:
			return
		case <-ctx.Done():
			t.Fatal("the stream goes on without a reader")
		case <-time.After(time.Millisecond):
			a.add("a~1", large...)
		}
	}
}
