package peer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/peer/inbox"
	"starling/terms"
)

// TestWrongValueIsReplaced changes the value of one peer, whatever the number of the others: it takes that of the
// journal, and the others go on.
func TestWrongValueIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits terms.Limits
		nodes  []string
	}{
		{"one of three", terms.DefaultLimits(), []string{"a", "b", "c"}},
		{"one of two", terms.DefaultLimits(), []string{"a", "b"}},
		{"one of two, with snapshots", few(), []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlockWithin(t, c.limits, c.nodes...)
				defer f.stop()
				ctx := context.Background()
				for i := range 10 {
					f.submit("a", job(fmt.Sprint("early-", i), terms.Batch, 1, "run", "0"))
				}
				f.peers["b"].post(ctx, func() { f.peers["b"].core.state.LastJob++ })
				f.submit("a", job("count", terms.Batch, 3, "run", "0"))
				inbox.Pause(ctx, 20*time.Second)
				f.submit("b", job("web", terms.Stateless, 1, "run"))
				f.wantMembers(c.nodes...)
				f.wantEqual("a", "b")
			})
		})
	}
}

func (f *flock) wantMembers(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if got := f.peers[name].Status(context.Background()); got.Phase != string(Member) {
			f.t.Errorf("%s is %s %v, want that it is a member", name, got.Phase, got.Warnings)
		}
	}
}

// TestOtherProgram has a peer that makes something else of the journal, however often it folds it: it stops, the others
// go on.
func TestOtherProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b", "c")
		defer f.stop()
		ctx := context.Background()
		b := f.peers["b"]
		b.post(ctx, func() { b.config.Limits.FinishedJobs, b.core.state.Limits.FinishedJobs = 2, 2 })
		for i := range 30 {
			f.submit("a", job(fmt.Sprint("job-", i), terms.Batch, 1, "run", "0"))
			inbox.Pause(ctx, 2*time.Second)
		}
		f.wantMembers("a", "c")
		if got := b.Status(ctx); got.Phase != string(Diverged) {
			t.Errorf("b is %s, want that it stopped", got.Phase)
		}
		f.await("a", "b takes nothing new", func(s *cluster.State) bool { return s.NodeOf("b").Offer.AwayUntil != 0 })
		f.await("a", "the work of b is done", func(s *cluster.State) bool { return s.JobOf("job-29").Finished != 0 })
	})
}
