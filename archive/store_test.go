package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"starling/archive/depot"
	"starling/cluster"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// storeOf returns a store in a folder.
func storeOf(t *testing.T, path, cluster string) Store {
	t.Helper()
	d, err := depot.Open(depot.Place{To: path})
	if err != nil {
		t.Fatal(err)
	}
	return Store{Depot: d, Cluster: cluster}
}

// fill lets an archive with little room see a history and carry it to the store, and closes it.
func (h *history) fill(t *testing.T, c Config, from, to int) *Archive {
	t.Helper()
	c.BytesMax = 150 << 10
	a := open(t, c)
	for ; from < to; from += 100 {
		h.play(a, from, min(from+100, to))
		a.flush()
		if err := a.carryAll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// TestStore has two peers keep the past in one store: neither has all of it, each tells all of it.
func TestStore(t *testing.T) {
	h, place := newHistory("a", 5000), filepath.Join(t.TempDir(), "store")
	first := testConfig(t)
	first.Store = storeOf(t, place, "one")
	a := h.fill(t, first, 0, 5000)
	defer a.Close()
	second := testConfig(t)
	second.Store = first.Store
	b := h.fill(t, second, 1010, 5000)
	defer b.Close()
	names, err := first.Store.Depot.List(t.Context())
	if err != nil || len(names) < 3 {
		t.Fatalf("in the store are %v, %v", names, err)
	}
	h.tellsAll(t, a)
	h.tellsAll(t, b)
	// Many of the same peer's age make no more of it than one does.
	third := testConfig(t)
	third.Store = first.Store
	h.fill(t, third, 0, 5000).Close()
	after, err := first.Store.Depot.List(t.Context())
	if err != nil || len(after) != len(names) {
		t.Errorf("a third peer leaves %d segments for %d, %v", len(after), len(names), err)
	}
	stranger := testConfig(t)
	stranger.Store = storeOf(t, place, "two")
	c := open(t, stranger)
	defer c.Close()
	h.play(c, 4990, 5000)
	if _, err := c.At(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "begins at index 4990") {
		t.Errorf("another cluster reads it: %v", err)
	}
}

// tellsAll wants an archive to tell all of the history, though it does not have all.
func (h *history) tellsAll(t *testing.T, a *Archive) {
	t.Helper()
	if oldest, _, _ := a.Span(); oldest.Index == 0 {
		t.Fatal("the peer has all by itself")
	}
	for index := 0; index <= 5000; index += 137 {
		s, err := a.At(t.Context(), terms.Index(index))
		if err != nil || s.Digest() != h.digests[index] {
			t.Fatalf("at %d: %v", index, err)
		}
		got, err := a.IndexAt(t.Context(), time.UnixMilli(int64(index*1000)), time.Now())
		if index > 0 && (err != nil || got != terms.Index(index)) {
			t.Fatalf("at %d s: index %d, %v", index, got, err)
		}
	}
	if from, err := a.Oldest(t.Context(), 5000); err != nil || from != 0 {
		t.Errorf("the oldest is %d, %v", from, err)
	}
	next := terms.Index(0)
	err := a.Walk(t.Context(), 0, 5000, func(s *cluster.State, f *report.Folded) error {
		if next++; f.Index != next || s.Digest() != h.digests[next] {
			t.Fatalf("after %d comes %d", next-1, f.Index)
		}
		return nil
	})
	if err != nil || next != 5000 {
		t.Errorf("walked to %d, %v", next, err)
	}
}

// TestStoreCarriesByItself has segments reach the store without being told, and a peer whose disk is lost read them.
func TestStoreCarriesByItself(t *testing.T) {
	h, place := newHistory("a", 3000), filepath.Join(t.TempDir(), "store")
	c := testConfig(t)
	c.Store, c.BytesMax, c.carryWithin = storeOf(t, place, "one"), 1<<19, time.Millisecond
	a := open(t, c)
	h.play(a, 0, 3000)
	a.flush()
	sealed := slices.DeleteFunc(a.local(), func(s segment) bool { return !s.sealed })
	for got := 0; got < len(sealed); { // until all are there, or the test takes too long
		got = len(must(c.Store.list(t.Context())))
	}
	a.Close()
	again := testConfig(t)
	again.Store = c.Store
	b := open(t, again)
	defer b.Close()
	h.play(b, 3000, 3000)
	h.mustHave(t, b, 0, int(sealed[len(sealed)-1].end.Index))
	if kept, err := os.ReadDir(filepath.Join(again.Dir, fetchedDir)); err != nil || len(kept) > fetchedMax {
		t.Errorf("%d fetched segments are kept, %v", len(kept), err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// away is a store that does not answer while it is down.
type away struct {
	depot.Depot
	down atomic.Bool
}

var errAway = errors.New("the store is away")

func (d *away) List(ctx context.Context) ([]depot.File, error) {
	if d.down.Load() {
		return nil, errAway
	}
	return d.Depot.List(ctx)
}

func (d *away) Fetch(ctx context.Context, name string, to io.Writer) error {
	if d.down.Load() {
		return errAway
	}
	return d.Depot.Fetch(ctx, name, to)
}

// TestStoreFails has the store be away, and what lies there be altered.
func TestStoreFails(t *testing.T) {
	h, place := newHistory("a", 5000), filepath.Join(t.TempDir(), "store")
	c := testConfig(t)
	store := &away{Depot: storeOf(t, place, "one").Depot}
	c.Store = Store{store, "one"}
	a := h.fill(t, c, 0, 5000)
	defer a.Close()
	oldest, _, _ := a.Span()
	store.down.Store(true)
	h.mustHave(t, a, int(oldest.Index), 5000)
	if _, err := a.At(t.Context(), 1); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "ask the store for") {
		t.Errorf("before what it has itself: %v", err)
	}
	a.tellStore(a.carryAll(t.Context()))
	if !strings.Contains(a.Warning(), "do not reach the store: the store is away") {
		t.Errorf("it warns of %q", a.Warning())
	}
	store.down.Store(false)
	a.tellStore(a.carryAll(t.Context()))
	if a.Warning() != "" {
		t.Errorf("it still warns of %q", a.Warning())
	}
	_, err := a.At(t.Context(), 1)
	if err != nil {
		t.Error(err)
	}
	all := must(c.Store.list(t.Context()))
	slices.SortFunc(all, func(x, y segment) int { return int(y.begin.Index) - int(x.begin.Index) })
	for i, alter := range map[int]func([]byte) []byte{
		0: func(b []byte) []byte { return b[:len(b)/2] },
		1: func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		2: func([]byte) []byte { return []byte("something else") },
	} {
		path := filepath.Join(place, all[i].path)
		data := must(os.ReadFile(path))
		if err := os.WriteFile(path, alter(data), 0o600); err != nil {
			t.Fatal(err)
		}
		fresh := testConfig(t)
		fresh.Store = c.Store
		b := open(t, fresh)
		_, err := b.At(t.Context(), all[i].end.Index-1)
		b.Close()
		if err == nil || !strings.Contains(err.Error(), all[i].path) {
			t.Errorf("altered segment %d: %v", i, err)
		}
	}
}

// TestNothingIsLostBeforeItIsCarried has a value that takes more than the room, and a peer that is started again and
// again: no segment is deleted before it is carried, and none ends without need.
func TestNothingIsLostBeforeItIsCarried(t *testing.T) {
	h := newHistory("a", 3000)
	c := testConfig(t)
	c.Store, c.BytesMax, c.carryWithin = storeOf(t, filepath.Join(t.TempDir(), "store"), "one"), 1, time.Hour
	a := open(t, c)
	for from := 0; from < 3000; from += 100 {
		h.play(a, from, from+100)
		a.flush()
		if from%1000 == 900 {
			a.Close()
			a = open(t, c)
		}
	}
	defer a.Close()
	if err := a.carryAll(t.Context()); err != nil || a.Warning() != "" {
		t.Fatalf("%v, %s", err, a.Warning())
	}
	for _, s := range must(c.Store.list(t.Context())) {
		if s.end.Index-s.begin.Index < 100 {
			t.Errorf("a segment from %d to %d", s.begin.Index, s.end.Index)
		}
	}
	for index := 0; index <= 3000; index += 77 {
		if s, err := a.At(t.Context(), terms.Index(index)); err != nil || s.Digest() != h.digests[index] {
			t.Fatalf("at %d: %v", index, err)
		}
	}
}

// TestAStoreThatStaysAway has a peer give up what it must, and tell.
func TestAStoreThatStaysAway(t *testing.T) {
	h, c := newHistory("a", 8000), testConfig(t)
	store := &away{Depot: storeOf(t, t.TempDir(), "one").Depot}
	store.down.Store(true)
	c.Store, c.BytesMax = Store{store, "one"}, 150<<10
	a := open(t, c)
	defer a.Close()
	for from := 0; from < 8000; from += 100 {
		h.play(a, from, from+100)
		a.flush()
	}
	a.tellStore(nil)
	if got := a.Warning(); !strings.Contains(got, "were deleted before they reached the store") {
		t.Errorf("it warns of %q", got)
	}
	bytes := int64(0)
	for _, s := range a.local() {
		bytes += s.bytes
	}
	if bytes > 4*c.BytesMax {
		t.Errorf("it takes %d bytes", bytes)
	}
}

// fork returns a history that is the same up to an index, and goes on otherwise.
func (h *history) fork(at, entries int) *history {
	f := &history{s: h.at(at), records: slices.Clone(h.records[:at]), digests: slices.Clone(h.digests[:at+1])}
	self := terms.NewPeerID("a", 1)
	for i := at; i < entries; i++ {
		f.write(self, &command.SubmitJob{Spec: terms.Job{Name: terms.JobName(fmt.Sprint("other", i)), Type: terms.Batch,
			Tasks: []terms.Task{{Name: "t", Instances: 1, Command: []string{"run"}, Placement: terms.Pack,
				Resources: terms.Resources{1, 1, 0}}}}})
	}
	return f
}

// TestALostEnd has a peer carry segments of an end that the cluster lost, and another tell only of what came instead.
func TestALostEnd(t *testing.T) {
	lost, place := newHistory("a", 3000), filepath.Join(t.TempDir(), "store")
	kept := lost.fork(1500, 2200)
	c := testConfig(t)
	c.Store = storeOf(t, place, "one")
	lost.fill(t, c, 0, 3000).Close()
	survivor := testConfig(t)
	survivor.Store = c.Store
	a := kept.fill(t, survivor, 0, 2200)
	defer a.Close()
	if oldest, _, _ := a.Span(); oldest.Index < 1600 {
		t.Fatalf("the survivor has all from %d on by itself", oldest.Index)
	}
	for index := 0; index <= 2200; index += 19 {
		s, err := a.At(t.Context(), terms.Index(index))
		if err != nil || s.Digest() != kept.digests[index] {
			t.Fatalf("at %d: %v", index, err)
		}
	}
	if oldest, err := a.Oldest(t.Context(), 2200); err != nil || oldest != 0 {
		t.Errorf("the oldest is %d, %v", oldest, err)
	}
}
