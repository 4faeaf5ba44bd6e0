package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

func TestJobStatus(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	submitted, err := c.SubmitJob(ctx, jobOn("web", 6, "b"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if submitted.GetJob() != "web" || c.Seen() != terms.Index(submitted.GetIndex()) {
		t.Errorf("got %v, seen %d", submitted, c.Seen())
	}
	b.report(terms.SlotName{Job: "web", Task: "main", Index: 1}, facts.NotEnded)
	status, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: "web"})
	if err != nil {
		t.Fatal(err)
	}
	wantCounts := &starlingv1.Counts{Desired: 6, Waiting: 2, Assigned: 3, Running: 1}
	if want := (&starlingv1.Task{Name: "main", Counts: wantCounts, State: "running",
		Changes: &starlingv1.TaskChanges{Place: 2, Ignore: 4}}); !proto.Equal(status.GetTasks()[0], want) {
		t.Errorf("got task %v, want %v", status.GetTasks()[0], want)
	}
	if !proto.Equal(status.GetSpec(), wire.Spec(jobOn("web", 6, "b"))) {
		t.Errorf("got spec %v", status.GetSpec())
	}
	wantJob := &starlingv1.Job{
		Name: "web", Id: 1, Type: "batch", Status: "running", Version: 1, Counts: wantCounts,
		SubmittedIndex: submitted.GetIndex(), SubmittedAt: status.GetJob().GetSubmittedAt(),
		ChangedIndex: submitted.GetIndex(),
	}
	if !proto.Equal(status.GetJob(), wantJob) {
		t.Errorf("got job %v, want %v", status.GetJob(), wantJob)
	}
	got := status.GetSlots()[1]
	want := &starlingv1.Slot{
		Task: "main", Number: 1, Phase: "running", Node: "b", Order: submitted.GetIndex(), Version: 1,
		Allocation: fmt.Sprintf("web.main[1]#%d", submitted.GetIndex()), Since: status.GetTime(),
		Ports: []*starlingv1.Port{{Name: "http", Number: 20001}}, Seat: "main", Health: "starting",
	}
	if !proto.Equal(got, want) {
		t.Errorf("got slot %v, want %v", got, want)
	}
	if waiting := status.GetSlots()[5]; waiting.GetPhase() != "waiting" || waiting.GetNode() != "" ||
		waiting.GetAllocation() != "" {
		t.Errorf("got slot %v, want it to wait without a node", waiting)
	}
}

func TestJobStatusPages(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	spec := jobOn("web", 5, "a")
	second := spec.Tasks[0]
	second.Name, second.Instances = "other", 3
	spec.Tasks = append(spec.Tasks, second)
	if _, err := c.SubmitJob(ctx, spec, 0); err != nil {
		t.Fatal(err)
	}
	slots := func(task string, size uint32) (all string, pages int) {
		request := &starlingv1.JobStatusRequest{Job: "web", Task: task, PageSize: size}
		for {
			status, err := c.JobStatus(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			if len(status.GetTasks()) != 2 {
				t.Errorf("got %d tasks on page %d, want all", len(status.GetTasks()), pages)
			}
			pages++
			for _, slot := range status.GetSlots() {
				all += fmt.Sprintf("%s%d ", slot.GetTask()[:1], slot.GetNumber())
			}
			if request.PageToken = status.GetNextPageToken(); request.PageToken == "" {
				return all, pages
			}
		}
	}
	cases := []struct {
		task  string
		size  uint32
		want  string
		pages int
	}{
		{"", 0, "m0 m1 m2 m3 m4 o0 o1 o2 ", 1},
		{"", 8, "m0 m1 m2 m3 m4 o0 o1 o2 ", 1},
		{"", 5, "m0 m1 m2 m3 m4 o0 o1 o2 ", 2},
		{"", 3, "m0 m1 m2 m3 m4 o0 o1 o2 ", 3},
		{"other", 2, "o0 o1 o2 ", 2},
	}
	for _, want := range cases {
		if got, pages := slots(want.task, want.size); got != want.want || pages != want.pages {
			t.Errorf("%q by %d: got %s on %d pages, want %s on %d", want.task, want.size, got, pages, want.want, want.pages)
		}
	}
}

func TestListJobs(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	for _, name := range []terms.JobName{"web", "etl-2", "etl-1", "etl-3"} {
		if _, err := c.SubmitJob(ctx, jobOn(name, 1, "a"), 0); err != nil {
			t.Fatal(err)
		}
	}
	page, err := c.ListJobs(ctx, &starlingv1.ListJobsRequest{Prefix: "etl", PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.GetJobs()) != 2 || page.GetJobs()[0].GetName() != "etl-1" || page.GetNextPageToken() != "etl-3" {
		t.Errorf("got %v, want etl-1, etl-2 and that etl-3 follows", page)
	}
	for prefix, want := range map[string]int{"": 4, "etl": 3, "w": 1, "x": 0} {
		all, err := c.AllJobs(ctx, prefix)
		if err != nil {
			t.Fatal(err)
		}
		if len(all.GetJobs()) != want || all.GetIndex() == 0 {
			t.Errorf("prefix %q: got %v, want %d jobs", prefix, all, want)
		}
	}
}

func TestKillJob(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.SubmitJob(ctx, jobOn("web", 1, "a"), 0); err != nil {
		t.Fatal(err)
	}
	killed, err := c.KillJob(ctx, "web", 0, false)
	if err != nil || killed.GetJob() != "web" {
		t.Fatalf("got %v, %v", killed, err)
	}
	status, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: "web"})
	if err != nil || status.GetJob().GetStatus() != "stopping" {
		t.Errorf("got %v, %v, want it to be stopping", status.GetJob(), err)
	}
}

func TestFollowJob(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.SubmitJob(ctx, jobOn("web", 1, "b"), 0); err != nil {
		t.Fatal(err)
	}
	steps := []facts.Ending{facts.NotEnded, facts.ByItself}
	var got []string
	err := c.FollowJob(ctx, &starlingv1.JobStatusRequest{Job: "web"},
		func(status *starlingv1.JobStatusResponse) (bool, error) {
			got = append(got, status.GetSlots()[0].GetPhase())
			if len(steps) > 0 {
				b.report(terms.SlotName{Job: "web", Task: "main"}, steps[0])
				steps = steps[1:]
			}
			return status.GetJob().GetFinal(), nil
		})
	if want := "[assigned running succeeded]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
}

// TestJobStatusOfAnUpdate tries a canary beside one of two instances.
func TestJobStatusOfAnUpdate(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	spec := jobOn("web", 2, "b")
	spec.Type = terms.Stateless
	spec.Update = terms.UpdatePolicy{BatchSize: 1, Canaries: 1}
	if _, err := c.SubmitJob(ctx, spec, 0); err != nil {
		t.Fatal(err)
	}
	for index := range uint32(2) {
		b.ready(facts.SlotRef{Job: 1, Index: index})
	}
	spec.Tasks[0].Command = []string{"better"}
	submitted, err := c.SubmitJob(ctx, spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: "web"})
	if err != nil {
		t.Fatal(err)
	}
	u := status.GetJob().GetUpdate()
	want := &starlingv1.Update{State: "ROLLING_FORWARD", From: 1, To: 2, BeganIndex: submitted.GetIndex(),
		BeganAt: status.GetTime(), ProgressAt: status.GetTime()}
	if !proto.Equal(u, want) {
		t.Errorf("got update %v, want %v", u, want)
	}
	got := []string{}
	for _, slot := range status.GetSlots() {
		got = append(got, fmt.Sprintf("%d %s v%d %s %s: %s", slot.GetNumber(), slot.GetSeat(), slot.GetVersion(),
			slot.GetPhase(),
			slot.GetHealth(), slot.GetWaitsFor()))
	}
	wantSlots := []string{
		"0 main v1 running healthy: the canaries", "0 canary v2 assigned starting: its start",
		"1 main v1 running healthy: the canaries",
	}
	if !slices.Equal(got, wantSlots) {
		t.Errorf("got %q, want %q", got, wantSlots)
	}
	history, err := c.JobHistory(ctx, "web")
	if err != nil || len(history.GetVersions()) != 2 || history.GetVersions()[0].GetOutcome() != "SUCCEEDED" ||
		history.GetVersions()[1].GetOutcome() != "" || history.GetVersions()[1].GetKind() != "submitted" {
		t.Errorf("got %v, %v", history, err)
	}
}

// TestDrainedNode shows a node that is being emptied.
func TestDrainedNode(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.DrainNode(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	peers, err := c.AllPeers(ctx)
	if err != nil || peers.GetPeers()[0].GetDraining() || !peers.GetPeers()[1].GetDraining() {
		t.Errorf("got %v, %v", peers, err)
	}
}

// TestWhatStartsWaitFor asks peer a about instances on b: what they wait for is known to b alone.
func TestWhatStartsWaitFor(t *testing.T) {
	a, b := pair()
	b.volunteer(b.serve(t))
	at, c := a.add("a~1", &command.SubmitJob{Spec: *jobOn("web", 1, "b")}).Index, ask(t, a.serve(t))
	id := terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"}, Order: at}
	b.status.Waits = map[terms.AllocationID]string{id: "the output of x"}
	told := func() (slot, why string) {
		status, err := c.JobStatus(within(t), &starlingv1.JobStatusRequest{Job: "web"})
		if err != nil {
			t.Fatal(err)
		}
		reasons, err := c.Why(within(t), &starlingv1.WhyRequest{Job: "web"})
		if err != nil {
			t.Fatal(err)
		}
		return status.GetSlots()[0].GetWaitsFor(), strings.Join(reasons.GetFindings()[0].GetDetails(), "\n")
	}
	if slot, why := told(); slot != "the output of x" ||
		!strings.Contains(why, "web.main[0] on b waits for the output of x") {
		t.Errorf("got %q and %q, want what b says", slot, why)
	}
	b.volunteer("127.0.0.1:1")
	if slot, why := told(); slot != "its node's peer, which does not answer" || !strings.Contains(why, slot) {
		t.Errorf("got %q and %q, want that b does not answer", slot, why)
	}
}

// TestFollowers asks for the jobs after one: all, whatever has become of them, that the caller may see.
func TestFollowers(t *testing.T) {
	g := newGate(t)
	for _, name := range []terms.JobName{"later", "team/later", "other-later"} {
		spec := jobOn(name, 1, "a")
		spec.After = []terms.JobName{"team/own"}
		if name == "other-later" {
			spec.After = []terms.JobName{"own"}
		}
		g.peer.add("a~1", &command.SubmitJob{Spec: *spec})
	}
	g.peer.add("a~1", &command.KillJob{Job: "team/later"})
	const method = "/starling.v1.Starling/JobStatus"
	for _, c := range []struct{ who, body, want string }{
		{"admin", `{"job":"team/own","followers":true}`, `"followers":["later","team/later"]`},
		{"member", `{"job":"team/own","followers":true}`, `"followers":["team/later"]`},
		{"admin", `{"job":"later","followers":true}`, `"followers":[]`},
		{"admin", `{"job":"team/own"}`, `"followers":[]`},
	} {
		if got := strings.ReplaceAll(g.text(t, c.who, method, c.body), " ", ""); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %s, want %s", c.who, c.body, got, c.want)
		}
	}
}
