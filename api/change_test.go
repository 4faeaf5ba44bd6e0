package api

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/command"
)

// TestChangesAreWritten wants each request in the journal as it was meant; what the fold makes of it is not asked.
func TestChangesAreWritten(t *testing.T) {
	slot := cluster.SlotName{Job: "web", Task: "main", Index: 2}
	cases := []struct {
		ask  func(context.Context, *client.Client) error
		want command.Command
	}{
		{func(ctx context.Context, c *client.Client) error {
			return second(c.SteerUpdate(ctx, "web", 3, command.Promote))
		}, &command.SteerUpdate{Job: "web", Version: 3, Steering: command.Promote}},
		{func(ctx context.Context, c *client.Client) error { return second(c.RevertJob(ctx, "web", 3, 1)) },
			&command.RevertJob{Job: "web", Against: 3, To: 1}},
		{func(ctx context.Context, c *client.Client) error { return second(c.RestartJob(ctx, "web", "main", 3)) },
			&command.RestartJob{Job: "web", Against: 3, Task: "main"}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.EndAllocation(ctx, "web.main[2]#4711", true))
		}, &command.EndAllocation{Slot: slot, Order: 4711, Elsewhere: true}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.DrainNode(ctx, "b.example", time.Hour))
		},
			&command.DrainNode{Node: "b.example", Drain: true, DeadlineMillis: 3_600_000}},
		{func(ctx context.Context, c *client.Client) error { return second(c.EndDrain(ctx, "b")) }, &command.DrainNode{Node: "b"}},
		{func(ctx context.Context, c *client.Client) error { return second(c.KillJob(ctx, "web", 3)) },
			&command.KillJob{Job: "web", Against: 3}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.SubmitJob(ctx, jobOn("web", 1, "a"), 3))
		},
			&command.SubmitJob{Against: 3, Spec: *jobOn("web", 1, "a")}},
	}
	for _, c := range cases {
		a, _ := pair()
		if err := c.ask(within(t), ask(t, a.serve(t))); err != nil && !asFailure(t, err).Decided {
			t.Errorf("%s: got %v, want an answer", c.want.Kind(), err)
		}
		got := a.entries[len(a.entries)-1].Entry.Commands[0]
		id := reflect.ValueOf(got).Elem().FieldByName("RequestID")
		if id.String() == "" {
			t.Errorf("%s: got no request id", c.want.Kind())
		}
		id.SetString("")
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

func TestChangesAreChecked(t *testing.T) {
	a, _ := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	long := strings.Repeat("x", 65)
	cases := []struct {
		err   error
		paths string
	}{
		{second(c.SteerUpdate(ctx, "a b", 1, 0)), "job steering"},
		{second(c.RevertJob(ctx, "", 1, 0)), "job to"},
		{second(c.RestartJob(ctx, cluster.JobName(long), "a.b", 1)), "job task"},
		{second(c.EndAllocation(ctx, "web.main[2]", false)), "allocation"},
		{second(c.DrainNode(ctx, "", time.Hour)), "node"},
	}
	for _, one := range cases {
		got := ""
		for _, p := range asFailure(t, one.err).Problems {
			got += " " + p.Path
		}
		if got = strings.TrimSpace(got); got != one.paths {
			t.Errorf("got complaints about %s, want %s", got, one.paths)
		}
	}
}

func TestPlanJob(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	plan := func(spec *cluster.JobSpec) *starlingv1.PlanJobResponse {
		t.Helper()
		index := a.Status().Index
		answer, err := c.PlanJob(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetIndex() != uint64(index) || a.Status().Index != index {
			t.Errorf("got a plan for index %d, then index %d, want %d", answer.GetIndex(), a.Status().Index, index)
		}
		return answer
	}
	// A new job, of which one instance has no room.
	got := plan(jobOn("web", 5, "b"))
	wantTasks := []*starlingv1.TaskPlan{{Task: "main", Placed: 4, Waiting: 1}}
	if got.GetVersion() != 0 || len(got.GetChanges()) > 0 || len(got.GetWaves()) != 1 || len(got.GetWaves()[0].GetSteps()) != 4 ||
		!got.GetComplete() || got.GetOthers() != 0 || len(got.GetFindings()) != 1 || !proto.Equal(got.GetTasks()[0], wantTasks[0]) {
		t.Errorf("got %v", got)
	}
	web := jobOn("web", 3, "b")
	if _, err := c.SubmitJob(ctx, web, 0); err != nil {
		t.Fatal(err)
	}
	for index := range uint32(3) {
		b.report(cluster.SlotName{Job: "web", Task: "main", Index: index}, cluster.NotEnded)
	}
	// The same again: nothing changes.
	if got := plan(web); got.GetVersion() != 1 || len(got.GetChanges()) > 0 || len(got.GetWaves()) > 0 || got.GetTasks()[0].GetUnchanged() != 3 {
		t.Errorf("got %v", got)
	}
	// A longer grace is given in place, one instance less stops one.
	web.Tasks[0].StopGraceMillis, web.Tasks[0].Instances = 7000, 2
	got = plan(web)
	change := &starlingv1.Change{Path: "tasks.main.stop_grace", Old: "0", New: "7s"}
	if len(got.GetChanges()) != 2 || !proto.Equal(got.GetChanges()[1], change) {
		t.Errorf("got changes %v", got.GetChanges())
	}
	if want := (&starlingv1.TaskPlan{Task: "main", Stopped: 1, UpdatedInPlace: 2}); !proto.Equal(got.GetTasks()[0], want) {
		t.Errorf("got %v, want %v", got.GetTasks(), want)
	}
	// Another program replaces them.
	web.Tasks[0].Command = []string{"better"}
	if got := plan(web).GetTasks()[0]; got.GetReplaced() != 2 || got.GetStopped() != 1 {
		t.Errorf("got %v", got)
	}
	// What would be refused, and what is no job.
	web.Type = cluster.Stateless
	if got := asFailure(t, second(c.PlanJob(ctx, web))); got.Code != wire.Conflict {
		t.Errorf("got %+v", got)
	}
	web.Tasks = nil
	if got := asFailure(t, second(c.PlanJob(ctx, web))); got.Code != wire.Invalid {
		t.Errorf("got %+v", got)
	}
}

func TestJobHistory(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if got := asFailure(t, second(c.JobHistory(ctx, "web"))); got.Code != wire.NotFound {
		t.Errorf("got %+v", got)
	}
	if _, err := c.SubmitJob(ctx, jobOn("web", 1, "b"), 0); err != nil {
		t.Fatal(err)
	}
	b.report(cluster.SlotName{Job: "web", Task: "main"}, cluster.NotEnded)
	other := jobOn("web", 1, "b")
	other.Tasks[0].Command = []string{"better"}
	if _, err := c.SubmitJob(ctx, other, 1); err != nil {
		t.Fatal(err)
	}
	got, err := c.JobHistory(ctx, "web")
	if err != nil || len(got.GetVersions()) != 2 || got.GetVersions()[1].GetNumber() != 2 ||
		!proto.Equal(got.GetVersions()[1].GetSpec(), wire.Spec(other)) {
		t.Errorf("got %v, %v", got, err)
	}
}
