package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/terms"
)

// inPool is a job whose name is a path.
const inPool = "analytics/etl/nightly"

// pooled are two peers, and a job of two instances in a pool, which holds them on b.
func pooled(t *testing.T) (a *peer, c *client.Client, address string, spec *terms.Job, second string) {
	t.Helper()
	a, b := pair()
	above, own := terms.NewPool("analytics"), terms.NewPool("analytics/etl")
	for k := range own.Quotas {
		above.Quotas[k].Reservation, own.Quotas[k].Reservation = 2<<20, 2<<20
	}
	a.state.SetPools([]terms.Pool{above, own, terms.NewPool(terms.DefaultPool)})
	b.volunteer(b.serve(t))
	address = a.serve(t)
	spec = jobOn(inPool, 2, "b")
	spec.Priority, spec.Preemption, spec.Controller, spec.MinAvailable = 80, terms.NonPreemptible, true, 2
	spec.Tasks[0].MinAvailable, spec.Tasks[0].MaxRunning, spec.Tasks[0].MaxRunMillis = 1, 2, 60_000
	c = ask(t, address)
	submitted, err := c.SubmitJob(within(t), spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	second = fmt.Sprintf("%s.main[1]#%d", inPool, submitted.GetIndex())
	b.writes(second, "hello\n")
	return a, c, address, spec, second
}

func TestReadJobInPool(t *testing.T) {
	_, c, address, spec, second := pooled(t)
	ctx := within(t)
	status, err := c.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: inPool})
	if err != nil {
		t.Fatal(err)
	}
	if got, problems := wire.SpecOf(status.GetSpec()); len(problems) > 0 || !got.Equal(spec) {
		t.Errorf("got %+v (%v), want %+v", got, problems, spec)
	}
	if got := status.GetSlots()[1].GetAllocation(); got != second {
		t.Errorf("got the allocation %s, want %s", got, second)
	}
	for _, request := range []*starlingv1.LogsRequest{{Allocation: second}, {Job: inPool, Task: "main", Slot: 1}} {
		if whose, output, err := read(ctx, c, request); err != nil || whose != second+" on b" || output != "hello\n" {
			t.Errorf("%v: got %s, %q and %v", request, whose, output, err)
		}
	}
	list, err := c.AllJobs(ctx, "analytics/")
	if err != nil || len(list.GetJobs()) != 1 || list.GetJobs()[0].GetName() != inPool {
		t.Errorf("got %v and %v, want the job", list, err)
	}
	question := "Why?connect=v1&encoding=json&message=" + url.QueryEscape(fmt.Sprintf(`{"job":%q}`, inPool))
	code, _, answer := exchange(t, "GET", wire.URL(address)+procedures+question, "")
	if code != 200 || !strings.Contains(answer, `"`+inPool+`"`) {
		t.Errorf("got %d and %s", code, answer)
	}
}

func TestChangeJobInPool(t *testing.T) {
	a, c, _, spec, second := pooled(t)
	ctx := within(t)
	changed := *spec
	changed.Priority = 20
	if plan, err := c.PlanJob(ctx, &changed); err != nil || len(plan.GetChanges()) != 1 ||
		plan.GetChanges()[0].GetPath() != "priority" {
		t.Errorf("got the changes %v and %v, want that of the priority", plan.GetChanges(), err)
	}
	if _, err := c.SubmitJob(ctx, &changed, 1); err != nil {
		t.Fatal(err)
	}
	if diff, err := c.JobDiff(ctx, inPool, 1, 2); err != nil || len(diff.GetChanges()) != 1 ||
		diff.GetChanges()[0].GetOld() != "80" {
		t.Errorf("got %v and %v, want the change of the priority", diff, err)
	}
	if history, err := c.JobHistory(ctx, inPool); err != nil || history.GetVersions()[0].GetSpec().GetPriority() != 80 {
		t.Errorf("got %v and %v, want the priority of the first version", history, err)
	}
	if answer, err := c.EndAllocation(ctx, ending(second, true, false)); err != nil || answer.GetJob() != inPool {
		t.Errorf("got %v and %v, want that the allocation is ended", answer, err)
	}
	if answer, err := c.KillJob(ctx, inPool, 2, false); err != nil || answer.GetJob() != inPool {
		t.Errorf("got %v and %v, want that the job is ended", answer, err)
	}
	if got := a.state.JobOf(inPool); !got.Stop {
		t.Errorf("got the job %+v, want that it ends", got)
	}
}
