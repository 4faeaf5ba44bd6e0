package peer

import (
	"slices"
	"testing"
	"testing/synctest"

	"starling/cluster"
	"starling/driver/fake"
	"starling/journal"
	"starling/peer/identity"
	"starling/terms"
)

// shelf is an archive that remembers what it was told.
type shelf struct {
	began   []terms.Index
	indexes []terms.Index
	digests []uint64
	other   bool
}

func (a *shelf) OtherPast(terms.Index) bool { return a.other }

func (a *shelf) Restored(s, _ *cluster.State) { a.began = append(a.began, s.Index) }

func (a *shelf) Folded(r journal.Record, s *cluster.State) {
	if terms.Index(r.Index) != s.Index {
		panic("a record comes without the value after it")
	}
	a.indexes, a.digests = append(a.indexes, s.Index), append(a.digests, s.Digest())
}

// TestArchiveIsToldOfAllRecords lets a second peer join: its archive is told each record, in order, with the value.
func TestArchiveIsToldOfAllRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		kept := &shelf{}
		f.archive = kept
		f.machines["b"], f.ids["b"] = fake.NewMachine(script), &identity.Memory{}
		f.start("b")
		f.ready("b")
		p := f.peers["b"]
		f.stop()
		want := []terms.Index{}
		for i := range p.core.state.Index {
			want = append(want, i+1)
		}
		if len(want) < 2 || !slices.Equal(kept.indexes, want) || !slices.Equal(kept.began, []terms.Index{0}) {
			t.Errorf("it was told %v after %v, want %v", kept.indexes, kept.began, want)
		}
		if last := kept.digests[len(kept.digests)-1]; last != p.core.state.Digest() {
			t.Errorf("the last digest is %016x, want %016x", last, p.core.state.Digest())
		}
	})
}
