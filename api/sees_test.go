package api

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"starling/api/door"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// TestInfoOfOthers has users ask a peer about itself: what it says of jobs is for those who may see them.
func TestInfoOfOthers(t *testing.T) {
	g := newGate(t)
	g.peer.status.Warnings = []string{"a warning about a secret of another pool"}
	g.peer.status.Waits = map[terms.AllocationID]string{
		{Slot: terms.SlotName{Job: "other", Task: "main"}}:    "for a secret of another pool",
		{Slot: terms.SlotName{Job: "team/own", Task: "main"}}: "for a secret of its own",
	}
	for who, want := range map[string][]bool{"viewer": {true, true}, "node": {true, true}, "member": {false, true}} {
		told := g.text(t, who, procedures+"Info", "{}")
		if strings.Contains(told, "another pool") != want[0] || strings.Contains(told, "of its own") != want[1] {
			t.Errorf("%s: got %s", who, told)
		}
	}
}

// TestThePastIsForWhoSeesNow takes a role back, and asks about the time before.
func TestThePastIsForWhoSeesNow(t *testing.T) {
	g := newGate(t)
	before := g.peer.state.Copy()
	g.peer.archive = &pastOf{early: before, late: before}
	list := func() string {
		request, err := http.NewRequestWithContext(within(t), "POST", wire.URL(g.address)+procedures+"ListJobs",
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(wire.AtHeader, strconv.FormatUint(uint64(before.Index), 10))
		answer, err := g.clients["member"].Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if told := list(); !strings.Contains(told, "team/own") || strings.Contains(told, "other") {
		t.Errorf("a member sees %s", told)
	}
	g.peer.add("a~1", &command.ChangePools{Pools: []terms.Pool{terms.NewPool("team")}})
	if told := list(); strings.Contains(told, "team/own") {
		t.Errorf("who was one sees %s", told)
	}
}

// TestAfterOthers has a job come after one of a pool whose jobs its user may not see: nothing tells whether that is
// there.
func TestAfterOthers(t *testing.T) {
	g := newGate(t)
	body := `{"spec":{"name":"team/next","type":"batch","after":["%s"],"tasks":[{"name":"main","command":["true"],` +
		`"resources":{"cpu_millicores":1,"memory_bytes":"1048576"}}]}}`
	for _, method := range []string{"PlanJob", "SubmitJob"} {
		there := g.text(t, "member", procedures+method, fmt.Sprintf(body, "other"))
		missing := g.text(t, "member", procedures+method, fmt.Sprintf(body, "none"))
		if want := "comes after job other: this needs the role viewer in pool default"; !strings.Contains(there, want) ||
			strings.ReplaceAll(there, "other", "none") != missing {
			t.Errorf("%s: got %s, and of one that is not there %s", method, there, missing)
		}
		own := g.text(t, "member", procedures+method, fmt.Sprintf(body, "team/none"))
		if !strings.Contains(own, "there is no job team/none") {
			t.Errorf("%s: of the own pool: got %s", method, own)
		}
	}
}

// TestWhyOthers asks why a job waits that came after another of a pool whose jobs the caller may not see, and to what
// it gave way.
func TestWhyOthers(t *testing.T) {
	g := newGate(t)
	next := jobOn("team/next", 1, "a")
	next.After = []terms.JobName{"other"}
	g.peer.add("a~1", &command.SubmitJob{Spec: *next})
	for who, want := range map[string]string{"member": "job other is of a pool of which you may not see the jobs",
		"viewer": "job other is running"} {
		if told := g.text(t, who, procedures+"Why", `{"job":"team/next"}`); !strings.Contains(told, want) {
			t.Errorf("%s: got %s, want %s", who, told, want)
		}
	}
	r, _ := g.peer.state.RefOf(terms.SlotName{Job: "team/own", Task: "main"})
	g.peer.state.SetPreemption(r, facts.Preemption{By: "other", Entry: 1})
	for who, want := range map[string]bool{"member": false, "viewer": true} {
		told := g.text(t, who, procedures+"JobStatus", `{"job":"team/own"}`)
		if !strings.Contains(told, `"preemption"`) || strings.Contains(told, "other") != want {
			t.Errorf("%s: got %s", who, told)
		}
	}
}

// TestPoolsOfAnOwner has who owns a pool look at pools and change them: there are those, and no others.
func TestPoolsOfAnOwner(t *testing.T) {
	g := newGate(t)
	dept := terms.NewPool("dept")
	dept.Owners = []string{"member"}
	g.peer.add("a~1", &command.ChangePools{Pools: []terms.Pool{dept, terms.NewPool("dept/web"), terms.NewPool("rest")}})
	cases := []struct{ method, body, want string }{
		{procedures + "ListPools", "{}", `"path":"dept/web"`},
		{procedures + "PoolStatus", `{"path":"dept"}`, `"parts":[{"path":"dept"`},
		{procedures + "PoolStatus", `{"path":"rest"}`, "needs the role viewer in pool rest"},
		{procedures + "PoolStatus", `{"path":"none"}`, "needs the role viewer in pool none"},
		{procedures + "PlanPools", `{"pools":[{"path":"dept/db"}]}`, `"what":"created"`},
		{procedures + "PlanPools", `{"pools":[{"path":"dept"}]}`, "needs the role admin in the whole cluster"},
		{procedures + "PlanPools", `{"gone":["rest/x"]}`, "needs the role admin in pool rest"},
		{procedures + "ChangePools", `{"gone":["rest/x"]}`, "needs the role admin in pool rest"},
		{procedures + "ChangePools", `{"pools":[{"path":"dept/db"}]}`, `"index"`},
		{procedures + "ListPeers", "{}", "needs the role viewer in the whole cluster"},
		{door.PathCan, `{"user":"member","verb":"change-pool","object":"dept/web"}`, `"may":true`},
		{door.PathCan, `{"user":"admin","verb":"drain","object":"a"}`, "may ask only about member"},
	}
	for _, c := range cases {
		told := strings.ReplaceAll(g.text(t, "member", c.method, c.body), " ", "")
		if !strings.Contains(told, strings.ReplaceAll(c.want, " ", "")) {
			t.Errorf("%s %s: got %s, want %s", c.method, c.body, told, c.want)
		}
		if !strings.Contains(c.body, "rest") && strings.Contains(told, "rest") {
			t.Errorf("%s %s tells of another's pool: %s", c.method, c.body, told)
		}
	}
}

// TestStreamsSayWhoIsRefused has those read streams by plain curl who may not.
func TestStreamsSayWhoIsRefused(t *testing.T) {
	g := newGate(t)
	for path, who := range map[string]string{door.PathJournal: "member", door.PathEvents: "node",
		door.PathEndpoints: "node"} {
		if told := g.call(t, who, path, ""); !strings.HasPrefix(told, "403") || !strings.Contains(told, `"denied"`) {
			t.Errorf("%s: got %s, want 403 and denied", path, told)
		}
	}
}

// TestStrangersAreNotRead has somebody without credentials send what cannot be read: that one is refused before it is.
func TestStrangersAreNotRead(t *testing.T) {
	g := newGate(t)
	for who, want := range map[string]string{"none": "answers only users and nodes",
		"submitter": "unmarshal"} {
		if told := g.text(t, who, procedures+"SubmitJob", `{"job": [`); !strings.Contains(told, want) {
			t.Errorf("%s: got %s, want %s", who, told, want)
		}
	}
}

// TestWhoSeesNothingWatchesNothing takes the only role of a user back.
func TestWhoSeesNothingWatchesNothing(t *testing.T) {
	g := newGate(t)
	events := func() (status int, told string) {
		answer, err := g.clients["member"].Get(wire.URL(g.address) + door.PathEvents + "?once=true")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if status, told := events(); status != http.StatusOK || !strings.Contains(told, "team/own") {
		t.Errorf("a member gets %d %s", status, told)
	}
	g.peer.add("a~1", &command.ChangePools{Pools: []terms.Pool{terms.NewPool("team")}})
	if status, told := events(); status != http.StatusForbidden || !strings.Contains(told, "user member (none) has no role in any pool") {
		t.Errorf("who has no role any more gets %d %s", status, told)
	}
}
