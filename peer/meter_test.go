package peer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster/workload"
	"starling/replica/report"
	"starling/terms"
)

// meter adds up what a peer counts.
type meter struct {
	first, last      terms.Index
	placed, appended int
	failed           int
}

func (m *meter) Folded(f *report.Folded, _ time.Duration) {
	if m.first == 0 {
		m.first = f.Index
	}
	m.last = f.Index
	m.placed += int(f.Outcome.Counts.Placed)
}

func (m *meter) Appended(_ time.Duration, err error) {
	if err == nil {
		m.appended++
	}
}

func (m *meter) CheckFailed() { m.failed++ }

// TestWhatWasBeforeIsNotCounted: a peer that comes later counts what happens from then on.
func TestWhatWasBeforeIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		f.submit("a", job("before", terms.Batch, 3, "run", "0"))
		s := f.await("a", "it succeeded", statusIs("before", workload.StatusSucceeded))
		counted := &meter{}
		f.meter = counted
		f.add("b")
		f.ready("b")
		receipt := f.submit("b", job("after", terms.Batch, 2, "run", "0"))
		f.await("b", "it succeeded", statusIs("after", workload.StatusSucceeded))
		if _, err := f.peers["b"].State(context.Background(), receipt.Index); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if counted.first <= s.Index || counted.last <= receipt.Index || counted.placed != 2 || counted.appended == 0 {
			t.Errorf("got %+v; the peer came after entry %d, and its job was entry %d", counted, s.Index, receipt.Index)
		}
	})
}
