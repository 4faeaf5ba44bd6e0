package reconcile_test

import (
	"fmt"
	"testing"

	"starling/reconcile"
	"starling/terms"
)

// change changes one thing about a task and its candidate.
type change = func(t *reconcile.Task, c *reconcile.Candidate)

func failed(_ *reconcile.Task, c *reconcile.Candidate) {
	c.Client, c.FailedAt = reconcile.FailedClient, now-10_000
}

func outdated(_ *reconcile.Task, c *reconcile.Candidate) {
	c.Version, c.Outdated = 1, true
}

func updating(t *reconcile.Task, _ *reconcile.Candidate) {
	t.Update = reconcile.Update{ID: 9, Total: 1}
}

// stories are what is said of a slot whose only candidate runs as asked, but for the changes.
var stories = []struct {
	want    string
	changes []change
}{
	{"keep: runs as asked", nil},
	{"keep: failed: waits until it is tried again +20000", []change{failed}},
	{"place: placed: the last instance failed or is out of reach; stop: failed, and is tried again",
		[]change{failed, func(t *reconcile.Task, c *reconcile.Candidate) {
			c.Due = true
		}}},
	{"place: placed: the last instance failed or is out of reach; stop: failed, and is tried again",
		[]change{failed, func(t *reconcile.Task, c *reconcile.Candidate) {
			t.Soon, c.FailedAt = reconcile.SoonMillis, now-29_000 // soon enough
		}}},
	{"place: placed: the last instance ended", []change{func(t *reconcile.Task, c *reconcile.Candidate) {
		t.Batch, c.Version, c.Client = true, 1, reconcile.CompleteClient // a new version of batch work runs again
	}}},
	{"keep: failed, and out of attempts", []change{failed, func(t *reconcile.Task, c *reconcile.Candidate) {
		c.Attempts = delays(1_000, 1_000)
	}}},
	{"keep: failed, and is not tried again", []change{failed, func(t *reconcile.Task, c *reconcile.Candidate) {
		t.Spec.Reschedule.AttemptsMax = 0
	}}},
	{"place: placed: the last instance was told to end", []change{func(t *reconcile.Task, c *reconcile.Candidate) {
		c.Told, c.Again = true, true
		t.Update = reconcile.Update{ID: 9, State: reconcile.UpdateFailed} // that holds only what was never asked for
	}}},
	{"keep: failed, and is not tried again", []change{failed, func(t *reconcile.Task, c *reconcile.Candidate) {
		c.Due, c.Final = true, true
	}}},
	{"keep: its node is out of reach: waits until another takes its place +30000",
		[]change{func(t *reconcile.Task, c *reconcile.Candidate) {
			c.Node = reconcile.NodeDisconnected
		}}},
	{"keep: held: the update failed", []change{failed, updating, func(t *reconcile.Task, c *reconcile.Candidate) {
		t.Update.State, c.Update, c.Due = reconcile.UpdateFailed, 9, true
	}}},
	{"replace: replaced: outdated", []change{outdated}},
	{"replace: replaced: outdated", []change{outdated, failed}},
	{"keep: held: the update is paused", []change{outdated, updating, func(t *reconcile.Task, c *reconcile.Candidate) {
		t.Update.State = reconcile.UpdatePaused
	}}},
	{"keep: held: waits until the canaries are promoted; canary: placed: canary of the update",
		[]change{outdated, func(t *reconcile.Task, c *reconcile.Candidate) {
			t.Update = reconcile.Update{ID: 9, Total: 1, Canaries: 1, Trying: true}
		}}},
	{"place: placed: the last instance was lost; stop: its node is lost",
		[]change{func(t *reconcile.Task, c *reconcile.Candidate) {
			c.Node = reconcile.NodeGone
		}}},
	{"keep: its node is out of reach: waits for it +60000", []change{func(t *reconcile.Task, c *reconcile.Candidate) {
		c.Node, t.Spec.Disconnect.Wait = reconcile.NodeDisconnected, true
	}}},
	{"place: placed: the last instance must leave its node; stop: must leave its node",
		[]change{func(t *reconcile.Task, c *reconcile.Candidate) {
			c.Migrate = true
		}}},
	{"keep: done: batch work is not run again", []change{func(t *reconcile.Task, c *reconcile.Candidate) {
		t.Batch, c.Client = true, reconcile.CompleteClient
	}}},
	{"place: placed: the last instance ended",
		[]change{func(t *reconcile.Task, c *reconcile.Candidate) { c.Client = reconcile.CompleteClient }}},
	{"keep: not wanted; stop: not needed", []change{func(t *reconcile.Task, c *reconcile.Candidate) { t.Count = 0 }}},
}

// TestReasons checks what is said of a slot.
func TestReasons(t *testing.T) {
	for _, c := range stories {
		task, slots := lone()
		for _, change := range c.changes {
			change(task, &slots[0].Candidates[0])
		}
		var out reconcile.Result
		reconcile.Reconcile(task, slots, reconcile.Tally{}, &out)
		if got := told(&out); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", slots[0].Candidates[0], got, c.want)
		}
	}
}

// TestPromotable checks that canaries may be promoted once all that are wanted are healthy, or more.
func TestPromotable(t *testing.T) {
	for wanted, want := range []bool{false, true, true, false} {
		task, slots, _ := steady(3)
		task.Update = reconcile.Update{ID: 9, Total: 3, Canaries: uint32(wanted)}
		for i := range slots {
			canary := reconcile.Candidate{Order: 2, Version: 1, Client: reconcile.RunningClient, Update: 9, CanaryOf: 9}
			if i < 2 {
				canary.Health = reconcile.Healthy
			}
			slots[i].Candidates = append(slots[i].Candidates, canary)
		}
		var out reconcile.Result
		reconcile.Reconcile(task, slots, reconcile.Tally{}, &out)
		if got := out.Update.Promotable; got != want {
			t.Errorf("2 of %d canaries are healthy: promotable is %v, want %v", wanted, got, want)
		}
	}
}

// lone returns a task whose one slot runs as asked.
func lone() (*reconcile.Task, []reconcile.Slot) {
	task, slots, _ := steady(1)
	task.Version, task.Policy.BatchSize = 2, 1
	task.Spec.Reschedule = terms.Reschedule{AttemptsMax: 2, IntervalMillis: 600_000, DelayMillis: 30_000}
	task.Spec.Disconnect.LostAfterMillis = 60_000
	slots[0].Candidates[0].Version = 2
	return task, slots
}

// told returns what a result says of its first slot.
func told(out *reconcile.Result) string {
	d := &out.Decisions[0]
	text := [...]string{"keep", "replace", "place"}[d.Main.Action] + ": " + d.Main.Reason.String()
	if d.Main.Until != 0 {
		text += fmt.Sprintf(" +%d", d.Main.Until-now)
	}
	if d.Canary.Action != reconcile.Keep {
		text += "; canary: " + d.Canary.Reason.String()
	}
	for _, s := range out.Stops {
		text += "; stop: " + s.Reason.String()
	}
	return text
}

// TestReasonsTold checks that every reason has words.
func TestReasonsTold(t *testing.T) {
	for r := reconcile.NoReason + 1; r < reconcile.ReasonCount; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no words", r)
		}
	}
}
