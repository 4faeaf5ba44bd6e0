package journaltest

import (
	"fmt"
	"testing"

	"starling/journal"
)

func closing() []contract {
	return []contract{
		{"Cluster", testCluster},
		{"Closed", testClosed},
		{"CloseEndsReaders", testCloseEndsReaders},
		{"CloseAbandonsPulses", testCloseAbandonsPulses},
	}
}

// testCluster proposes ids at the same time: all hear of one, and of that one for ever.
func testCluster(t *testing.T, h Harness) {
	a := h.open(t)
	if id, err := a.Cluster(limited(t), ""); id != "" || err != nil {
		t.Fatalf("got cluster %q and %v, want none before one was proposed", id, err)
	}
	const proposals = 4
	heard := make(chan string, proposals)
	for i := range proposals {
		j := h.open(t)
		go func() {
			id, err := j.Cluster(limited(t), fmt.Sprintf("cluster-%d", i))
			if err != nil {
				t.Error(err)
			}
			heard <- id
		}()
	}
	first := await(t, heard, "the id of the cluster")
	for range proposals - 1 {
		if id := await(t, heard, "the id of the cluster"); id != first {
			t.Errorf("got clusters %q and %q, want one", first, id)
		}
	}
	if id, err := a.Cluster(limited(t), "late"); id != first || err != nil {
		t.Errorf("got cluster %q and %v, want %q", id, err, first)
	}
}

func testClosed(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	want := appendAll(t, a, "w", 2)
	must(t, a.Close())
	must(t, a.Close())

	ctx := limited(t)
	wantError(t, "append", a.Append(ctx, record("w", 3)), journal.ErrClosed)
	wantError(t, "follow", a.Follow(ctx, 0, func([]journal.Record) error { return nil }), journal.ErrClosed)
	_, err := a.Head(ctx)
	wantError(t, "head", err, journal.ErrClosed)
	_, err = a.Pulse(ctx, "p", h.PulseTTL, false)
	wantError(t, "pulse", err, journal.ErrClosed)
	wantError(t, "watch", a.WatchPulse(ctx, "p", func(journal.PulseState) {}), journal.ErrClosed)
	_, err = a.Pulses(ctx)
	wantError(t, "pulses", err, journal.ErrClosed)
	_, err = a.Cluster(ctx, "")
	wantError(t, "cluster", err, journal.ErrClosed)

	// Others do not notice, and what was appended stays.
	wantSame(t, follow(t, b, 0).take(2), want)
	wantSame(t, follow(t, h.open(t), 0).take(2), want)
}

func testCloseEndsReaders(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	appendAll(t, a, "w", 2)
	mine, others := follow(t, a, 0), follow(t, b, 0)
	mine.take(2)
	others.take(2)
	w := watch(t, a, "p")
	w.next()
	must(t, a.Close())
	wantError(t, "Follow", mine.returned(), journal.ErrClosed)
	wantError(t, "WatchPulse", await(t, w.ended, "the return of WatchPulse"), journal.ErrClosed)

	must(t, b.Append(limited(t), record("w", 3)))
	others.take(1)
}

func testCloseAbandonsPulses(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	w := watch(t, b, "p")
	p := h.begin(t, a, "p")
	w.until(true)
	must(t, a.Close())
	if alive, err := b.Pulses(limited(t)); err != nil || len(alive) != 1 {
		t.Errorf("after the close: %v, %v, want it abandoned, not ended", alive, err)
	}
	w.until(false)
	p.Abandon()
}
