package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"starling/api/client"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/rights"
	"starling/terms"
)

// peer answers about plans.
type peer struct {
	starlingv1connect.UnimplementedStarlingHandler
	status *starlingv1.JobStatusResponse
	refuse *wire.Failure
	put    []*starlingv1.PoolSpec
	// not are the objects of acts that the user may not do.
	not []string
}

func (p *peer) whoAmI(w http.ResponseWriter, r *http.Request) {
	asked, me := door.WhoAmIRequest{}, door.WhoAmI{Name: "bob", Role: "viewer"}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, act := range asked.Acts {
		answer := rights.Answer{May: !slices.Contains(p.not, act.Object), Why: act.Verb + " " + act.Object}
		me.Answers = append(me.Answers, answer)
	}
	_ = json.NewEncoder(w).Encode(me) // it fails only if who asked has gone
}

// beside returns a peer, and a browser that is signed in to a page which asks it.
func beside(t *testing.T) (*browser, *peer) {
	t.Helper()
	p := &peer{}
	mux := http.NewServeMux()
	mux.Handle(starlingv1connect.NewStarlingHandler(p))
	mux.HandleFunc("POST "+door.PathWhoAmI, p.whoAmI)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols}
	socket := filepath.Join(t.TempDir(), "peer")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // until it is closed
	asking := client.New([]string{wire.UnixPrefix + socket})
	t.Cleanup(func() {
		asking.Close()
		_ = server.Close()
	})
	page, err := newPage(self, asking, asking.Forwards())
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{T: t, page: page}
	b.signIn(page.Link(0))
	return b, p
}

func (p *peer) PlanJob(_ context.Context, asked *starlingv1.PlanJobRequest) (*starlingv1.PlanJobResponse, error) {
	if p.refuse != nil {
		return nil, p.refuse.Wire()
	}
	task := asked.GetSpec().GetTasks()[0]
	return &starlingv1.PlanJobResponse{Job: asked.GetSpec().GetName(), Complete: true, Warnings: []string{"no user x"},
		Version: p.status.GetJob().GetVersion(), Changes: []*starlingv1.Change{{Path: "a", Old: "1", New: "2"}},
		Tasks: []*starlingv1.TaskPlan{{Task: task.GetName(), Placed: task.GetInstances()}}}, nil
}

func (p *peer) PlanPools(_ context.Context,
	asked *starlingv1.PlanPoolsRequest) (*starlingv1.PlanPoolsResponse, error) {
	p.put = asked.GetPools()
	return &starlingv1.PlanPoolsResponse{Version: asked.GetAgainst(),
		Changes:      []*starlingv1.PoolChange{{Path: p.put[0].GetPath(), What: "created"}},
		Entitlements: []*starlingv1.EntitlementChange{{Path: "ml", Kind: "cpu", After: 2000}},
		Warnings:     []*starlingv1.Problem{{Path: "ml", Reason: "more than there is"}}}, nil
}

func (p *peer) ListPools(context.Context, *starlingv1.ListPoolsRequest) (*starlingv1.ListPoolsResponse, error) {
	pool := &starlingv1.Pool{Spec: &starlingv1.PoolSpec{Path: "default"}}
	return &starlingv1.ListPoolsResponse{Version: 7, Pools: []*starlingv1.Pool{pool}}, nil
}

func (p *peer) JobStatus(_ context.Context,
	asked *starlingv1.JobStatusRequest) (*starlingv1.JobStatusResponse, error) {
	if p.status == nil || asked.GetJob() != p.status.GetJob().GetName() {
		return nil, (&wire.Failure{Code: wire.NotFound, Reason: "there is no such job"}).Wire()
	}
	return p.status, nil
}

// ask sends a question about what is planned, and reads its answer.
func (b *browser) ask(path string, question, answer any) (status int, said string) {
	b.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		b.Fatal(err)
	}
	w := b.post(path, string(text))
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			b.Fatal(err)
		}
	}
	return w.Code, w.Body.String()
}

const twoJobs = `job: first
type: batch
tasks: [{name: a, command: "true"}]
---
job: second
type: batch
after: [first]
tasks: [{name: a, command: "true"}]
`

// TestPlanOfFailedService plans a new version of what has failed for good, and a new job where one has ended.
func TestPlanOfFailedService(t *testing.T) {
	b, peer := beside(t)
	for finished, against := range map[uint64]uint32{0: 4, 9: 0} {
		peer.status = &starlingv1.JobStatusResponse{
			Job: &starlingv1.Job{Name: "second", Version: 4, Final: true, FinishedIndex: finished}}
		got := plan{}
		b.ask("/plan", map[string]any{"text": twoJobs}, &got)
		if len(got.Jobs) != 2 || got.Jobs[1].Against != against {
			t.Errorf("finished at %d: got %+v, want it against %d", finished, got.Jobs, against)
		}
	}
}

func TestPlanOfAFile(t *testing.T) {
	b, peer := beside(t)
	out := &browser{T: t, page: b.page}
	if status, said := out.ask("/plan", map[string]any{"text": twoJobs}, &plan{}); status != http.StatusUnauthorized {
		t.Errorf("signed out: got %d %s", status, said)
	}
	got := plan{}
	b.ask("/plan", map[string]any{"text": twoJobs}, &got)
	if len(got.Jobs) != 2 || !strings.Contains(got.Jobs[0].Words, "first: a new job\ntask a: 1 placed\n") ||
		!got.Jobs[0].Changes || got.Jobs[0].Warnings[0] != "no user x" ||
		!strings.Contains(got.Jobs[1].Words, "second: comes after first, which this file brings") {
		t.Errorf("got %+v", got.Jobs)
	}
	spec := &starlingv1.JobSpec{}
	if err := protojson.Unmarshal(got.Jobs[1].Spec, spec); err != nil || spec.GetName() != "second" {
		t.Errorf("got the spec %s (%v)", got.Jobs[1].Spec, err)
	}

	got = plan{}
	b.ask("/plan", map[string]any{"text": "job: web\ntype: nonsense\ntasks: []\n"}, &got)
	if len(got.Problems) == 0 || got.Problems[0].Line != 2 || got.Problems[0].Column != 7 ||
		!strings.HasPrefix(got.Problems[0].Reason, "type: ") {
		t.Errorf("got %+v", got.Problems)
	}

	peer.refuse = &wire.Failure{Code: wire.Denied, Reason: "you may not",
		Problems: []terms.Problem{{Path: "job", Reason: "is of others"}}}
	status, said := b.ask("/plan", map[string]any{"text": twoJobs}, &got)
	if status != http.StatusForbidden || !strings.Contains(said, `pasted:1: job first: you may not\njob: is of others`) {
		t.Errorf("refused: got %d %s", status, said)
	}
}

func TestPlanOfPools(t *testing.T) {
	b, peer := beside(t)
	got := plan{}
	b.ask("/plan", map[string]any{"text": "pools:\n  - path: ml\n"}, &got)
	if p := got.Pools; p == nil || p.Against != 7 || p.Words != "pools: version 7 to 8\n  created  ml\n" ||
		len(p.Rows) != 2 || p.Rows[1][3] != "2" || p.Warnings[0] != "ml: more than there is" || len(p.Pools) != 1 ||
		peer.put[0].GetPath() != "ml" {
		t.Errorf("got %+v", got.Pools)
	}
	got = plan{}
	b.ask("/plan", map[string]any{"text": "{\"pools\": []}\n"}, &got)
	if p := got.Pools; p == nil || p.Changes || p.Words != "nothing would change: the tree keeps version 7" {
		t.Errorf("the same again: got %+v", got.Pools)
	}
}

func TestPlanOfWhatOneMayNot(t *testing.T) {
	b, peer := beside(t)
	for _, c := range []struct{ text, not, want string }{
		{twoJobs, "none", ""},
		{twoJobs, "second", "run second"},
		{"pools:\n  - path: ml\n", "ml", "change-pool ml"},
	} {
		peer.not = []string{c.not}
		got := plan{}
		b.ask("/plan", map[string]any{"text": c.text}, &got)
		if got.Refusal != c.want || got.Jobs == nil && got.Pools == nil {
			t.Errorf("%q without %s: got %+v, want %q", c.text, c.not, got, c.want)
		}
	}
}

func TestWhoLooks(t *testing.T) {
	b, peer := beside(t)
	peer.not = []string{"web"}
	got, asked := door.WhoAmI{}, door.WhoAmIRequest{}
	asked.Acts = []door.Act{{Verb: "stop", Object: "web"}, {Verb: "drain", Object: "a"}}
	out := &browser{T: t, page: b.page}
	if status, said := out.ask("/whoami", asked, &got); status != http.StatusUnauthorized {
		t.Errorf("signed out: got %d %s", status, said)
	}
	b.ask("/whoami", asked, &got)
	want := []rights.Answer{{May: false, Why: "stop web"}, {May: true, Why: "drain a"}}
	if got.Name != "bob" || got.Role != "viewer" || !slices.Equal(got.Answers, want) {
		t.Errorf("got %+v", got)
	}
}

func TestPlanOfANumber(t *testing.T) {
	b, peer := beside(t)
	got := plannedJob{}
	scale := func(job string, instances int) (int, string) {
		got = plannedJob{}
		return b.ask("/scale", map[string]any{"job": job, "task": "a", "instances": instances}, &got)
	}
	if status, said := scale("web", 3); status != http.StatusNotFound {
		t.Errorf("no job: got %d %s", status, said)
	}
	peer.status = &starlingv1.JobStatusResponse{Job: &starlingv1.Job{Name: "web", Version: 4, Type: "stateless"},
		Spec: &starlingv1.JobSpec{Name: "web", Type: "stateless", Tasks: []*starlingv1.TaskSpec{{Name: "a", Instances: 2,
			Command: []string{"x"}, Resources: &starlingv1.Resources{CpuMillicores: 100, MemoryBytes: 1 << 20}}}}}
	scale("web", 3)
	spec := &starlingv1.JobSpec{}
	if err := protojson.Unmarshal(got.Spec, spec); err != nil || got.Against != 4 ||
		spec.GetTasks()[0].GetInstances() != 3 || !strings.Contains(got.Words, "task a: 3 placed") {
		t.Errorf("got %+v (%v)", got, err)
	}
	if scale("web", 2); got.Changes || got.Spec != nil {
		t.Errorf("the same again: got %+v", got)
	}
	if status, said := scale("web", -1); status != http.StatusBadRequest {
		t.Errorf("a bad number: got %d %s", status, said)
	}
	peer.status.Job.Status = "stopping"
	if _, said := scale("web", 3); !strings.Contains(said, "so it is not scaled any more") {
		t.Errorf("stopping: got %s", said)
	}
}
