package api

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/api/words"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// TestChangesAreWritten wants each request in the journal as it was meant; what the fold makes of it is not asked.
func TestChangesAreWritten(t *testing.T) {
	slot := terms.SlotName{Job: "web", Task: "main", Index: 2}
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
		{func(ctx context.Context, c *client.Client) error { return second(c.SuspendJob(ctx, "web", 3, true)) },
			&command.SuspendJob{Job: "web", Against: 3, Resume: true}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.EndAllocation(ctx, ending("web.main[2]#4711", true, false)))
		}, &command.EndAllocation{Slot: slot, Order: 4711, Elsewhere: true}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.EndAllocation(ctx, ending("web.main[2]#4711", false, true)))
		}, &command.EndAllocation{Slot: slot, Order: 4711, WithoutVolumes: true}},
		{func(ctx context.Context, c *client.Client) error {
			return second(c.DrainNode(ctx, "b.example", time.Hour))
		},
			&command.DrainNode{Node: "b.example", Drain: true, DeadlineMillis: 3_600_000}},
		{func(ctx context.Context, c *client.Client) error { return second(c.EndDrain(ctx, "b")) },
			&command.DrainNode{Node: "b"}},
		{func(ctx context.Context, c *client.Client) error { return second(c.KillJob(ctx, "web", 3, false)) },
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
		{second(c.RestartJob(ctx, terms.JobName(long), "a.b", 1)), "job task"},
		{second(c.SuspendJob(ctx, "a b", 1, false)), "job"},
		{second(c.EndAllocation(ctx, ending("web.main[2]", false, false))), "allocation"},
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

// TestPlanJob plans changes of a job of which three instances run, one after another and all without effect.
func TestPlanJob(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	if _, err := c.SubmitJob(ctx, jobOn("web", 3, "b"), 0); err != nil {
		t.Fatal(err)
	}
	for index := range uint32(3) {
		b.report(terms.SlotName{Job: "web", Task: "main", Index: index}, facts.NotEnded)
	}
	cases := []struct {
		change func(*terms.Job)
		want   string
	}{
		{func(*terms.Job) {}, "version 1; main: 3 unchanged"},
		{func(s *terms.Job) { s.Name = "new" }, "version 0; 1 step; main: 1 placed, 2 waiting; 1 finding"},
		{func(s *terms.Job) { s.Tasks[0].Instances = 5 },
			"version 1; tasks.main.instances 3 to 5 starts; 1 step; main: 1 placed, 3 unchanged, 1 waiting; 1 finding"},
		{func(s *terms.Job) { s.Tasks[0].StopGraceMillis, s.Tasks[0].Instances = 7000, 2 },
			"version 1; tasks.main.instances 3 to 2 stops; tasks.main.stop_grace 0 to 7s; 1 step; main: 1 stopped, 2 in place"},
		{func(s *terms.Job) { s.Tasks[0].StopDelayMillis = 10_000 },
			"version 1; tasks.main.stop_delay  to 10s; main: 3 in place"},
		{func(s *terms.Job) { s.Tasks[0].Command = []string{"better"} },
			"version 1; tasks.main.command [work] to [better] replaces; 3 steps; main: 3 replaced"},
	}
	if _, err := c.SubmitJob(ctx, service(2), 0); err != nil {
		t.Fatal(err)
	}
	index := a.Status().Index
	if answer, err := c.PlanJob(ctx, service(3)); err != nil || !strings.HasSuffix(planned(answer), "FAILED; 1 finding") {
		t.Errorf("got %s, %v, want that the update fails", planned(answer), err)
	}
	for _, one := range cases {
		spec := jobOn("web", 3, "b")
		one.change(spec)
		answer, err := c.PlanJob(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := planned(answer); got != one.want || !answer.GetComplete() || answer.GetIndex() != uint64(index) {
			t.Errorf("got %s at %d, want %s", got, answer.GetIndex(), one.want)
		}
	}
	if got := a.Status().Index; got != index {
		t.Errorf("plans were written: index %d, want %d", got, index)
	}
	spec := jobOn("web", 3, "b")
	spec.Type = terms.Stateless
	if got := asFailure(t, second(c.PlanJob(ctx, spec))); got.Code != wire.Conflict {
		t.Errorf("got %+v", got)
	}
	spec.Tasks = nil
	if got := asFailure(t, second(c.PlanJob(ctx, spec))); got.Code != wire.Invalid {
		t.Errorf("got %+v", got)
	}
}

// TestPlanAfterAnAbort plans for a job of which three of four instances are of an older version: the same again changes
// nothing, and what then is of which version is told.
func TestPlanAfterAnAbort(t *testing.T) {
	a, b := pair()
	c, ctx := ask(t, a.serve(t)), within(t)
	spec := jobOn("web", 4, "b")
	spec.Type, spec.Update = terms.Stateless, terms.UpdatePolicy{BatchSize: 1}
	spec.Tasks[0].Resources = terms.Resources{1, 1 << 20, 0}
	if _, err := c.SubmitJob(ctx, spec, 0); err != nil {
		t.Fatal(err)
	}
	for index := range uint32(4) {
		b.ready(facts.SlotRef{Job: 1, Index: index})
	}
	better := *spec
	better.Tasks = slices.Clone(spec.Tasks)
	better.Tasks[0].Command = []string{"better"}
	if _, err := c.SubmitJob(ctx, &better, 1); err != nil {
		t.Fatal(err)
	}
	b.report(terms.SlotName{Job: "web", Task: "main"}, facts.OnRequest)
	if _, err := c.SteerUpdate(ctx, "web", 2, command.Abort); err != nil {
		t.Fatal(err)
	}
	b.ready(facts.SlotRef{Job: 1})
	worse, gone := better, *spec
	worse.Tasks = slices.Clone(spec.Tasks)
	worse.Tasks[0].Command = []string{"worse"}
	gone.Tasks = []terms.Task{spec.Tasks[0]}
	gone.Tasks[0].Name = "other"
	for _, one := range []struct {
		spec *terms.Job
		want string
	}{
		{&better, "version 2; main: 1 unchanged, 3 outdated; ABORTED; 1 finding"},
		{spec, "version 2; tasks.main.command [better] to [work] replaces; 1 step; main: 1 replaced, 3 unchanged"},
	} {
		answer, err := c.PlanJob(ctx, one.spec)
		if err != nil || planned(answer) != one.want {
			t.Errorf("got %s, %v, want %s", planned(answer), err, one.want)
		}
	}
	answer, err := c.PlanJob(ctx, &gone)
	if err != nil || answer.GetChanges()[1].GetPath() != "tasks.main" || answer.GetChanges()[1].GetEffect() != "stops" {
		t.Errorf("got %v, %v, want that the task stops", answer.GetChanges(), err)
	}
	// What was on its way to a version that has no such task waits for nothing.
	if _, err := c.SubmitJob(ctx, &worse, 2); err != nil {
		t.Fatal(err)
	}
	b.report(terms.SlotName{Job: "web", Task: "main"}, facts.OnRequest)
	b.ready(facts.SlotRef{Job: 1})
	if _, err := c.SteerUpdate(ctx, "web", 3, command.Abort); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PlanJob(ctx, &gone); err != nil {
		t.Errorf("got %v", err)
	}
}

// service is a job on a whose new version needs so many cores, and gets none for long.
func service(cores int64) *terms.Job {
	spec := jobOn("service", 2, "a")
	spec.Type, spec.Update = terms.Stateless, terms.UpdatePolicy{BatchSize: 1, ProgressDeadlineMillis: 60_000}
	spec.Tasks[0].Resources[terms.CPU] = cores * 1000
	return spec
}

// planned says a plan in a line.
func planned(answer *starlingv1.PlanJobResponse) string {
	parts := []string{fmt.Sprintf("version %d", answer.GetVersion())}
	for _, c := range answer.GetChanges() {
		text := fmt.Sprintf("%s %s to %s", c.GetPath(), c.GetOld(), c.GetNew())
		if c.GetEffect() != "in place" {
			text += " " + c.GetEffect()
		}
		parts = append(parts, text)
	}
	steps := uint64(0)
	for _, wave := range answer.GetWaves() {
		steps += uint64(len(wave.GetSteps()))
	}
	if steps > 0 {
		parts = append(parts, words.Count(steps, "step"))
	}
	for _, task := range answer.GetTasks() {
		var counts []string
		for _, one := range []struct {
			count uint32
			word  string
		}{
			{task.GetPlaced(), "placed"}, {task.GetReplaced(), "replaced"}, {task.GetStopped(), "stopped"},
			{task.GetUpdatedInPlace(), "in place"}, {task.GetUnchanged(), "unchanged"}, {task.GetWaiting(), "waiting"},
			{task.GetOutdated(), "outdated"},
		} {
			if one.count > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", one.count, one.word))
			}
		}
		parts = append(parts, task.GetTask()+": "+strings.Join(counts, ", "))
	}
	if u := answer.GetUpdate(); u.GetFinal() && u.GetState() != "SUCCEEDED" {
		parts = append(parts, u.GetState())
	}
	if n := len(answer.GetFindings()); n > 0 {
		parts = append(parts, words.Count(uint64(n), "finding"))
	}
	return strings.Join(parts, "; ")
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
	b.report(terms.SlotName{Job: "web", Task: "main"}, facts.NotEnded)
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
	if old, now := got.GetVersions()[0].GetInstances(), got.GetVersions()[1].GetInstances(); old != 1 || now != 0 {
		t.Errorf("got %d and %d instances, want the one of the first version", old, now)
	}
	diff, err := c.JobDiff(ctx, "web", 0, 0)
	want := []*starlingv1.Change{{Path: "tasks.main.command", Old: "[work]", New: "[better]", Replaces: true,
		Effect: "replaces"}}
	if err != nil || diff.GetFrom() != 1 || diff.GetTo() != 2 || !proto.Equal(diff.GetChanges()[0], want[0]) {
		t.Errorf("got %v, %v", diff, err)
	}
	if got := asFailure(t, second(c.JobDiff(ctx, "web", 7, 2))); got.Code != wire.NotFound {
		t.Errorf("got %+v", got)
	}
}

func ending(allocation string, elsewhere, withoutVolumes bool) *starlingv1.EndAllocationRequest {
	return &starlingv1.EndAllocationRequest{Allocation: allocation, Elsewhere: elsewhere, WithoutVolumes: withoutVolumes}
}
