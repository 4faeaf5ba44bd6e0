package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer/inbox"
	"starling/terms"
)

// few are limits under which a snapshot is due soon, and has some chunks.
func few() terms.Limits {
	l := terms.DefaultLimits()
	l.SnapshotEntries, l.ChunkBytes = 20, 700
	return l
}

// trimmed runs a cluster until its journal was trimmed, and returns up to where.
func trimmed(t *testing.T, names ...string) (*flock, journal.Snapshot) {
	f := newFlockWithin(t, few(), names...)
	for i := range 30 {
		f.submit(names[0], job(fmt.Sprint("early-", i), terms.Batch, 1, "true", "0"))
	}
	f.await(names[0], "a snapshot is confirmed", func(s *cluster.State) bool { return s.Snapshots.Confirmed.Index > 0 })
	for {
		synctest.Wait()
		s, err := f.shared.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Index > 0 {
			return f, s
		}
		inbox.Pause(context.Background(), publishEvery)
	}
}

// TestTrim trims the journal, and lets a new machine and one that was away go on from the snapshot.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := trimmed(t, "a", "b", "c")
		defer f.stop()
		if s.Chunks < 2 {
			t.Errorf("the snapshot has %d chunks, want some", s.Chunks)
		}
		err := f.shared.Follow(context.Background(), 1, func([]journal.Record) error { return errors.New("a record came") })
		if !errors.Is(err, journal.ErrTrimmed) {
			t.Errorf("reading from the beginning: %v", err)
		}
		f.crash("b")
		f.submit("a", job("late", terms.Stateless, 1, "run"))
		f.start("b")
		f.add("d")
		for _, name := range []string{"b", "d"} {
			f.ready(name)
			f.await(name, "the last job is known", func(s *cluster.State) bool { return s.JobOf("late") != nil })
		}
		f.wantEqual("a", "d")
	})
}

// wantEqual compares the values of two peers at the same entry.
func (f *flock) wantEqual(one, other string) {
	f.t.Helper()
	a, b := &cluster.State{}, &cluster.State{}
	for {
		a = f.await(one, "", func(s *cluster.State) bool { return s.Index >= b.Index })
		if b = f.await(other, "", func(s *cluster.State) bool { return s.Index >= a.Index }); a.Index == b.Index {
			break
		}
	}
	if a.Digest() != b.Digest() {
		f.t.Errorf("at entry %d %s has digest %016x, %s has %016x", a.Index, one, a.Digest(), other, b.Digest())
	}
}

// TestDamagedSnapshot starts a machine where what stands for the journal is damaged: it stops, and says so.
func TestDamagedSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := trimmed(t, "a")
		defer f.stop()
		if err := f.shared.PutChunk(context.Background(), s, 1, []byte("rubbish")); err != nil {
			t.Fatal(err)
		}
		f.add("b")
		b := f.peers["b"]
		<-b.Done()
		if err := b.Err(); !errors.Is(err, ErrSnapshot) {
			t.Errorf("it stops because of %v, want %v", err, ErrSnapshot)
		}
		f.submit("a", job("late", terms.Stateless, 1, "run"))
	})
}

// TestAFullJournalRefusesNewWork fills most of the quota with jobs: then what is new is refused, what ends jobs is not,
// and when those are forgotten and the journal is trimmed there is room again.
func TestAFullJournalRefusesNewWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := terms.DefaultLimits()
		limits.SnapshotEntries, limits.FinishedJobs = 20, 2
		f := newFlockWithin(t, limits, "a")
		defer f.stop()
		f.shared.Bound(1 << 20)
		full := func(i int) bool {
			spec := job(fmt.Sprintf("large-%d", i), terms.Stateless, 1, "run")
			spec.Tasks[0].Env = []terms.EnvVar{{Name: "TEXT", Value: strings.Repeat("x", 30_000)}}
			receipt, err := f.peers["a"].Submit(context.Background(), &command.SubmitJob{Spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			inbox.Pause(context.Background(), measureEvery+time.Second) // until it is looked again
			if receipt.Refusal.Code == facts.Exhausted && !strings.Contains(receipt.Refusal.Reason, "the journal is full: ") {
				t.Fatalf("refused: %s", receipt.Refusal.Reason)
			}
			return receipt.Refusal.Code == facts.Exhausted
		}
		jobs := 0
		for ; !full(jobs); jobs++ {
			if jobs == 100 {
				t.Fatal("100 jobs of 30 kB fit into 1 MB")
			}
		}
		got := f.peers["a"].Status(context.Background()).Warnings
		if !strings.Contains(fmt.Sprint(got), "the journal is full: ") {
			t.Errorf("got warnings %q, want one that the journal is full", got)
		}
		for i := range jobs {
			receipt, err := f.peers["a"].Submit(context.Background(),
				&command.KillJob{Job: terms.JobName(fmt.Sprintf("large-%d", i))})
			if err != nil || receipt.Refusal.Code != facts.OK {
				t.Fatalf("job %d could not be stopped: %v, %v", i, receipt, err)
			}
		}
		for again := 0; full(jobs); again++ {
			if again == 100 {
				t.Fatal("there was no room again")
			}
			_, _ = f.peers["a"].Submit(context.Background(), &command.KillJob{Job: "none"}) // an entry brings the next snapshot
		}
		t.Logf("full with %d jobs", jobs)
	})
}
