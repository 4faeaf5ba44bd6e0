package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/replica/report"
	"starling/terms"
)

// told is a line of a stream.
type told struct {
	Index, Type, Resume, Kind, Name string
	Job                             struct{ Status string }
	Endpoint                        struct{ Address, Health, DNSName string }
	Error                           struct{ Code, Message string }
}

func (e told) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Index, e.Type, e.Kind, e.Name))
}

// line returns the next line of a stream.
func line(t *testing.T, next func() string) (e told) {
	t.Helper()
	text := next()
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

// until reads lines to one that begins so.
func until(t *testing.T, next func() string, prefix string) (lines []string) {
	t.Helper()
	for {
		e := line(t, next).String()
		if lines = append(lines, e); strings.HasPrefix(e, prefix) {
			return lines
		}
	}
}

// TestWatch goes through the life of a job as a reader of everything and one of a part of it are told of it.
func TestWatch(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t)) + "/v1/events"
	_, all, leave := events(t, url)
	defer leave()
	want := "6 there pool default,6 there node a,6 there node b,6 synced"
	if got := strings.Join(until(t, all, "6 synced"), ","); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, part, leave := events(t, url+"?node=a&kinds=instance,job")
	defer leave()
	until(t, part, "6 synced")
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	a.report(terms.SlotName{Job: "web", Task: "main", Index: 1}, facts.ByItself)
	want = "7 changed node a,7 added job web,7 added instance web.main[0],7 added instance web.main[1]," +
		"8 changed node a,8 changed job web,8 changed instance web.main[1]"
	if got := strings.Join(until(t, all, "8 changed instance"), ","); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want = "7 added instance web.main[0],7 added instance web.main[1],8 changed instance web.main[1]"
	if got := strings.Join(until(t, part, "8 changed"), ","); got != want {
		t.Errorf("of node a: got %s, want %s", got, want)
	}
	_, once, leave := events(t, url+"?pool=default&kinds=job&once=true")
	defer leave()
	if got, want := fmt.Sprint(line(t, once), line(t, once), once()), "8 there job web 8 syncedend <nil>"; got != want {
		t.Errorf("once: got %s, want %s", got, want)
	}
	if _, other, _ := events(t, url+"?pool=team&once=true"); line(t, other).String() != "8 synced" {
		t.Error("something is told of another pool")
	}
}

// TestWatchGoesOn resumes within an entry, where nothing may be lost, behind it, and as browsers do.
func TestWatchGoesOn(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t)) + "/v1/events"
	_, keeps, leave := events(t, url) // and so the entries are kept
	defer leave()
	until(t, keeps, "6 synced")
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	var resumes []string
	for e := line(t, keeps); ; e = line(t, keeps) {
		if resumes = append(resumes, e.Resume); e.Name == "web.main[1]" {
			break
		}
	}
	if got := strings.Join(resumes, " "); got != "6 6 6 7" {
		t.Errorf("got %s, want 7 with the last change of entry 7 alone", got)
	}
	_, again, leave := events(t, url+"?once=true&kinds=instance&after=6")
	defer leave()
	if got := strings.Join(until(t, again, "7 synced"), ","); got !=
		"7 added instance web.main[0],7 added instance web.main[1],7 synced" {
		t.Errorf("got %s", got)
	}
	_, browser, leave := events(t, url+"?kinds=instance", "Accept", "text/event-stream", "Last-Event-ID", "6")
	defer leave()
	for _, want := range []string{"id: 6", "data: {", "", "id: 7", "data: {", "", "id: 7", "data: {"} {
		if got := browser(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// whole is an archive of all that a herd has folded.
type whole struct {
	Archive
	*herd
}

func (w whole) At(_ context.Context, index terms.Index) (*cluster.State, error) {
	if index < w.oldest {
		return nil, gone{fmt.Errorf("the archive of this peer begins at index %d", w.oldest)}
	}
	s := cluster.NewState()
	for _, f := range w.entries[:index] {
		replica.Apply(s, f.Index, f.Entry, false)
	}
	return s, nil
}

func (w whole) Walk(ctx context.Context, from, to terms.Index,
	visit func(*cluster.State, *report.Folded) error) error {
	for _, f := range w.entries[from:to] {
		if err := visit(nil, f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// TestWatchIsAlike reads a history from two peers, live from one and from the archive of the other: both tell the same,
// byte by byte.
func TestWatchIsAlike(t *testing.T) {
	a, b := pair()
	b.archive = whole{herd: b.herd}
	_, live, leave := events(t, wire.URL(a.serve(t))+"/v1/events")
	defer leave()
	until(t, live, "6 synced")
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	a.add("b~1", &command.DrainNode{Node: "b", Drain: true})
	a.report(terms.SlotName{Job: "web", Task: "main", Index: 1}, facts.ByItself)
	a.add("a~1", &command.KillJob{Job: "web"})
	from := wire.URL(b.serve(t)) + "/v1/events?once=true&after="
	_, _, past := exchange(t, "GET", from+"6", "")
	lines := strings.Split(strings.TrimSuffix(past, "\n"), "\n")
	if len(lines) < 11 || !strings.Contains(lines[len(lines)-1], "synced") {
		t.Fatalf("got %s", past)
	}
	for _, want := range lines[:len(lines)-1] {
		if got := live(); got != want {
			t.Errorf("live %s\npast %s", got, want)
		}
	}
	b.oldest = 5
	status, _, answer := exchange(t, "GET", from+"3", "")
	if want := "what changed behind index 3 cannot be told by this peer: the archive of this peer begins at index 5. " +
		"Ask another peer, or watch without after"; status != 404 || !strings.Contains(answer, want) {
		t.Errorf("got %d %s", status, answer)
	}
	b.archive = nil
	if status, _, answer := exchange(t, "GET", from+"7", ""); status != 404 || !strings.Contains(answer,
		"it keeps no archive") {
		t.Errorf("without an archive: got %d %s", status, answer)
	}
}

// TestWatchByRight watches as a user with a role in one pool alone, which is then taken back.
func TestWatchByRight(t *testing.T) {
	g := newGate(t)
	get := func(who, query string) string { return g.call(t, who, "/starling.v1.Starling/Watch", query) }
	for who, want := range map[string][2]bool{"viewer": {true, true}, "member": {true, false}} {
		got := get(who, `{"once":true}`)
		for i, name := range []string{"team/own.main[0]", "other.main[0]"} {
			if strings.Contains(got, `"`+name+`"`) != want[i] {
				t.Errorf("%s is told of %s: %v", who, name, !want[i])
			}
		}
		if sees := strings.Contains(got, `"kind":"node"`) || strings.Contains(got, `"kind": "node"`); sees != want[1] {
			t.Errorf("%s is told of nodes: %v", who, sees)
		}
	}
	for query, want := range map[string]string{
		`{"once":true,"kinds":["node"]}`: "may not watch kind node: it needs the role viewer in the whole cluster",
		`{"once":true,"job":"other"}`:    "this needs the role viewer in pool default",
	} {
		if got := get("member", query); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// TestWatchEndsWithTheRole takes back the role of a user who watches.
func TestWatchEndsWithTheRole(t *testing.T) {
	g := newGate(t)
	stream, err := wire.Peer(g.clients["member"], g.address).Watch(within(t),
		&starlingv1.WatchRequest{Kinds: []string{"job"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	next := func() string {
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
		return stream.Msg().GetType() + " " + stream.Msg().GetName()
	}
	if got := next() + next(); got != "there team/ownsynced " {
		t.Fatalf("got %s", got)
	}
	team, other := terms.NewPool("team"), terms.NewPool("another")
	other.Viewers = []string{"member"}
	g.peer.add("a~1", &command.KillJob{Job: "team/own"})
	if got := next(); got != "changed team/own" {
		t.Errorf("got %s", got)
	}
	g.peer.add("a~1", &command.ChangePools{Pools: []terms.Pool{team, other}})
	g.peer.add("a~1", &command.SubmitJob{Spec: *jobOn("team/more", 1, "a")})
	g.peer.add("a~1", &command.SubmitJob{Spec: *jobOn("another/one", 1, "a")})
	if got := next(); got != "added another/one" {
		t.Errorf("got %s, want nothing of the pool in which the user has no role any more", got)
	}
}

// TestWatchBehindTheEnd goes on behind an index that the journal does not have, as after a restore of an older backup.
func TestWatchBehindTheEnd(t *testing.T) {
	a, _ := pair()
	url := wire.URL(a.serve(t)) + "/v1/events?once=true&"
	for _, query := range []string{"after=7", "after=6&min_index=7", "after=999999999"} {
		status, _, answer := exchange(t, "GET", url+query, "")
		if status != 404 || !strings.Contains(answer, "the journal ends at index 6, as after a restore") {
			t.Errorf("%s: got %d %s", query, status, answer)
		}
	}
	if status, _, answer := exchange(t, "GET", url+"after=6", ""); status != 200 || !strings.Contains(answer, "synced") {
		t.Errorf("at the end: got %d %s", status, answer)
	}
}

// TestEndpoints asks where the instances of a job are found: once, and as it changes.
func TestEndpoints(t *testing.T) {
	a, _ := pair()
	a.volunteer("10.0.0.1:7460")
	a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 2, "a")})
	url := wire.URL(a.serve(t)) + "/v1/endpoints/"
	_, _, answer := exchange(t, "GET", url+"web", "")
	for _, want := range []string{`"address":"10.0.0.1"`, `"dns_name":"1.main.web.starling"`, `"health":"starting"`,
		`"name":"http","number":20001`, `"type":"synced"`} {
		if !strings.Contains(strings.ReplaceAll(answer, " ", ""), want) {
			t.Errorf("got %s, want %s", answer, want)
		}
	}
	_, next, leave := events(t, url+"web?once=false")
	defer leave()
	until(t, next, "8 synced")
	r, _ := a.state.RefOf(terms.SlotName{Job: "web", Task: "main", Index: 1})
	a.ready(r)
	if e := line(t, next); e.String() != "9 changed endpoint web.main[1]" || e.Endpoint.Health != "healthy" {
		t.Errorf("got %+v", e)
	}
	a.add("a~1", &command.KillJob{Job: "web"})
	if got := strings.Join(until(t, next, "10 removed endpoint web.main[1]"), ","); got !=
		"10 removed endpoint web.main[0],10 removed endpoint web.main[1]" {
		t.Errorf("got %s", got)
	}
}

// TestWatchLetsSlowReadersGo watches with a reader that takes nothing.
func TestWatchLetsSlowReadersGo(t *testing.T) {
	a, _ := pair()
	address := a.serve(t)
	response, _, leave := events(t, wire.URL(address)+"/v1/events")
	defer leave()
	for i := range 30 { // more than buffers take and than is kept
		var jobs []command.Command
		for k := range 2000 {
			jobs = append(jobs, &command.SubmitJob{Spec: *jobOn(terms.JobName(fmt.Sprintf("job%d-%d", i, k)), 1, "nowhere")})
		}
		a.add("a~1", jobs...)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if last := string(text[max(0, len(text)-300):]); !strings.Contains(last, "this reader is slower than the cluster") {
		t.Errorf("got %s", last)
	}
}
