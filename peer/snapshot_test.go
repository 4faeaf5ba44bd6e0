package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"starling/cluster"
	"starling/journal"
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
		pause(context.Background(), publishEvery)
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
