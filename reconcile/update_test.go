package reconcile_test

import (
	"testing"

	"starling/reconcile"
	"starling/terms"
)

// TestUpdateComplete spoils an update of three healthy instances that has nothing left to do, one thing at a time.
func TestUpdateComplete(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *reconcile.Task, slots []reconcile.Slot)
		want   bool
	}{
		{"all is done", func(*reconcile.Task, []reconcile.Slot) {}, true},
		{"it is paused, and all is done",
			func(t *reconcile.Task, _ []reconcile.Slot) { t.Update.State = reconcile.UpdatePaused }, true},
		{"it failed", func(t *reconcile.Task, _ []reconcile.Slot) { t.Update.State = reconcile.UpdateFailed }, false},
		{"one is not judged", func(_ *reconcile.Task, s []reconcile.Slot) { s[1].Candidates[0].Health = reconcile.Unjudged },
			false},
		{"one is no part of it", func(_ *reconcile.Task, s []reconcile.Slot) { s[1].Candidates[0].Update = 0 }, false},
		{"more were to be changed than there are slots now",
			func(t *reconcile.Task, _ []reconcile.Slot) { t.Update.Total = 9 }, true},
		{"its canaries are promoted", func(t *reconcile.Task, _ []reconcile.Slot) {
			t.Update.Canaries, t.Update.Promoted = 1,
				true
		}, true},
		{"a canary is not promoted", func(t *reconcile.Task, s []reconcile.Slot) {
			t.Update.Canaries, t.Update.Total = 1, 1
			s[0].Candidates[0].CanaryOf = 9
		}, false},
		{"one is outdated", func(t *reconcile.Task, s []reconcile.Slot) {
			t.Update.Total, s[2].Candidates[0].Version, s[2].Candidates[0].Outdated = 2, 0, true
		}, false},
		{"one failed", func(t *reconcile.Task, s []reconcile.Slot) {
			s[2].Candidates[0].Client, s[2].Candidates[0].Health = reconcile.FailedClient, reconcile.Unhealthy
		}, false},
	} {
		task, slots, _ := steady(3)
		task.Update = reconcile.Update{ID: 9, Total: 3}
		for i := range slots {
			slots[i].Candidates[0].Update, slots[i].Candidates[0].Health = 9, reconcile.Healthy
		}
		c.change(task, slots)
		var out reconcile.Result
		reconcile.Reconcile(task, slots, reconcile.Tally{}, &out)
		if got := out.Update.Complete; got != c.want {
			t.Errorf("%s: complete is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRollingTokens checks how many of five outdated seats are replaced, four at a time, when the first is of the
// update.
func TestRollingTokens(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(first *reconcile.Candidate)
		want   int
	}{
		{"healthy", func(first *reconcile.Candidate) { first.Health = reconcile.Healthy }, 4},
		{"not judged", func(first *reconcile.Candidate) {}, 3},
		{"unhealthy", func(first *reconcile.Candidate) { first.Health = reconcile.Unhealthy }, 0},
		{"lost", func(first *reconcile.Candidate) { first.Node = reconcile.NodeGone }, 3},
	} {
		task, slots, _ := steady(6)
		task.Version, task.Policy.BatchSize = 2, 4
		task.Update = reconcile.Update{ID: 9, Total: 6}
		for i := range slots[1:] {
			slots[i+1].Candidates[0].Outdated = true
		}
		first := &slots[0].Candidates[0]
		first.Version, first.Update = 2, 9
		c.change(first)
		var out reconcile.Result
		reconcile.Reconcile(task, slots, reconcile.Tally{}, &out)
		if got := len(out.Replacements); got != c.want {
			t.Errorf("the first is %s: %d replaced, want %d", c.name, got, c.want)
		}
	}
}

func TestKeepsReplacement(t *testing.T) {
	original := reconcile.Candidate{Version: 2, Client: reconcile.RunningClient, Started: 100}
	for _, c := range []struct {
		rule        terms.Survivor
		replacement reconcile.Candidate
		want        bool
	}{
		{terms.KeepOriginal, reconcile.Candidate{Version: 2}, false},
		{terms.KeepOriginal, reconcile.Candidate{Version: 3}, true},
		{terms.KeepReplacement, reconcile.Candidate{Version: 2}, true},
		{terms.KeepLongest, reconcile.Candidate{Version: 2, Started: 101}, false},
		{terms.KeepLongest, reconcile.Candidate{Version: 2, Started: 100}, true},
		{terms.KeepLongest, reconcile.Candidate{Version: 2}, false},
	} {
		if got := reconcile.KeepsReplacement(c.rule, &original, &c.replacement); got != c.want {
			t.Errorf("%d keeps the replacement %+v: %v, want %v", c.rule, c.replacement, got, c.want)
		}
	}
}
