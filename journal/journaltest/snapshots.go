package journaltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"starling/journal"
)

func snapshots() []contract {
	return []contract{
		{"NoSnapshot", testNoSnapshot},
		{"Trim", testTrim},
		{"TrimAgain", testTrimAgain},
		{"TrimRefused", testTrimRefused},
		{"TrimBehindReaders", testTrimBehindReaders},
		{"TrimInterrupted", testTrimInterrupted},
		{"TrimWhileWriting", testTrimWhileWriting},
		{"TrimThenResend", testTrimThenResend},
		{"Restore", testRestore},
	}
}

// snapshot puts n chunks at an index and returns the snapshot that they are.
func snapshot(t testing.TB, j journal.Journal, at journal.Index, n uint32) journal.Snapshot {
	t.Helper()
	s := journal.Snapshot{Index: at, Chunks: n}
	chunk := func(i uint32) []byte { return fmt.Appendf(nil, "chunk %d of %d", i, at) }
	sum := sha256.New()
	for i := range n {
		sum.Write(chunk(i))
	}
	sum.Sum(s.Sum[:0])
	for i := range n {
		must(t, j.PutChunk(limited(t), s, i, chunk(i)))
	}
	return s
}

// wantSnapshot fails unless s stands and all of it can be read.
func wantSnapshot(t testing.TB, j journal.Journal, want journal.Snapshot) {
	t.Helper()
	got, err := j.Snapshot(limited(t))
	must(t, err)
	if got != want {
		t.Errorf("the snapshot of %d in %d chunks stands, want that of %d in %d", got.Index, got.Chunks, want.Index,
			want.Chunks)
	}
	sum := sha256.New()
	for i := range want.Chunks {
		chunk, err := j.Chunk(limited(t), want, i)
		must(t, err)
		sum.Write(chunk)
	}
	if want.Chunks > 0 && [sha256.Size]byte(sum.Sum(nil)) != want.Sum {
		t.Errorf("the chunks of the snapshot at %d have another sum", want.Index)
	}
}

func testNoSnapshot(t *testing.T, h Harness) {
	a := h.open(t)
	wantSnapshot(t, a, journal.Snapshot{})
	one, other := journal.Snapshot{Index: 7}, journal.Snapshot{Index: 7, Sum: [sha256.Size]byte{2}}
	must(t, a.PutChunk(limited(t), other, 0, []byte("other")))
	_, err := a.Chunk(limited(t), one, 0)
	wantError(t, "a chunk that was put for another snapshot", err, journal.ErrNoChunk)

	must(t, a.PutChunk(limited(t), one, 0, []byte("first")))
	must(t, a.PutChunk(limited(t), one, 0, make([]byte, journal.ChunkBytesMax)))
	got, err := h.open(t).Chunk(limited(t), one, 0)
	if must(t, err); len(got) != journal.ChunkBytesMax {
		t.Errorf("the chunk has %d bytes, want those that were put last", len(got))
	}
	wantError(t, "too large a chunk", a.PutChunk(limited(t), one, 1, make([]byte, journal.ChunkBytesMax+1)),
		journal.ErrTooLarge)
	if got, err = a.Chunk(limited(t), other, 0); err != nil || string(got) != "other" {
		t.Errorf("the chunk of the other snapshot is %q, %v", got, err)
	}
	wantSnapshot(t, a, journal.Snapshot{})
}

func testTrim(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	early := follow(t, b, 0)
	want := appendAll(t, a, "w", 10)
	wantSame(t, early.take(10), want)
	s := snapshot(t, a, 6, 3)
	must(t, a.Trim(limited(t), s))

	for _, j := range []journal.Journal{a, b, h.open(t)} {
		wantSnapshot(t, j, s)
		wantSame(t, follow(t, j, 7).take(4), want[6:])
		wantSame(t, follow(t, j, 9).take(2), want[8:])
		for _, from := range []journal.Index{0, 1, 6} {
			err := j.Follow(limited(t), from, func(got []journal.Record) error {
				return fmt.Errorf("record %d was delivered from %d", got[0].Index, from)
			})
			wantError(t, fmt.Sprintf("follow from %d", from), err, journal.ErrTrimmed)
		}
		if got := head(t, j); got != 10 {
			t.Errorf("after the cut the head is %d, want 10", got)
		}
	}
	next := record("w", 11)
	must(t, b.Append(limited(t), next))
	wantSame(t, early.take(1), []journal.Record{next})
	if got := head(t, a); got != 11 {
		t.Errorf("after one more append the head is %d, want 11", got)
	}
}

// testTrimAgain trims several times, also up to the last record, and to what was trimmed already.
func testTrimAgain(t *testing.T, h Harness) {
	a := h.open(t)
	all := appendAll(t, a, "w", 9)
	first, second := snapshot(t, a, 3, 2), snapshot(t, a, 9, 1)
	later := snapshot(t, a, 12, 1)
	must(t, a.Trim(limited(t), first))
	must(t, a.Trim(limited(t), first))
	wantSnapshot(t, a, first)
	wantSame(t, follow(t, a, 4).take(6), all[3:])

	must(t, a.Trim(limited(t), second))
	must(t, a.Trim(limited(t), first))
	wantSnapshot(t, a, second)
	_, err := a.Chunk(limited(t), first, 0)
	wantError(t, "a chunk of the snapshot before", err, journal.ErrNoChunk)
	next := follow(t, h.open(t), 10)
	more := make([]journal.Record, 3)
	for i := range more {
		more[i] = record("w", 10+i)
		must(t, a.Append(limited(t), more[i]))
	}
	wantSame(t, next.take(3), more)
	must(t, a.Trim(limited(t), later))
	wantSnapshot(t, h.open(t), later)
	if got := head(t, a); got != 12 {
		t.Errorf("when all was trimmed the head is %d, want 12", got)
	}
}

func testTrimRefused(t *testing.T, h Harness) {
	a := h.open(t)
	all := appendAll(t, a, "w", 5)
	s := snapshot(t, a, 4, 2)
	s.Chunks = 3
	wantError(t, "trim with a chunk missing", a.Trim(limited(t), s), journal.ErrNoChunk)
	wantError(t, "trim beyond the head", a.Trim(limited(t), snapshot(t, a, 6, 1)), journal.ErrAhead)
	wantSnapshot(t, a, journal.Snapshot{})
	wantSame(t, follow(t, a, 0).take(5), all)
}

// testTrimBehindReaders cuts what a slow reader has not read: it reads it all the same, or is told.
func testTrimBehindReaders(t *testing.T, h Harness) {
	a := h.open(t)
	slow, idle := follow(t, a, 0), follow(t, a, 8)
	appendAll(t, a, "w", 7)
	slow.take(1)
	must(t, a.Trim(limited(t), snapshot(t, a, 7, 1)))
	last := record("w", 8)
	must(t, a.Append(limited(t), last))
	wantSame(t, idle.take(1), []journal.Record{last})
	for slow.next <= 8 {
		select {
		case err := <-slow.ended:
			wantError(t, "a reader behind the cut", err, journal.ErrTrimmed)
			return
		case batch := <-slow.delivered:
			slow.check(batch)
		case <-time.After(patience):
			t.Fatalf("a reader behind the cut is told nothing, it read up to record %d", slow.next-1)
		}
	}
}

// testTrimInterrupted breaks off cuts wherever they are. Nothing is lost by that, and the next finishes them.
func testTrimInterrupted(t *testing.T, h Harness) {
	const n = 400
	a := h.open(t)
	all := appendAll(t, a, "w", n)
	for at := journal.Index(20); at < n; at += 20 {
		s := snapshot(t, a, at, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*20*time.Microsecond)
		if err := a.Trim(ctx, s); err != nil {
			t.Logf("cut at %d: %v", at, err) // the engine may do it later, too
		}
		cancel()
		read := map[journal.Index]string{}
		must(t, readTo(limited(t), h.open(t), n, read))
		for i := at + 1; i <= n; i++ {
			if want := name(all[i-1]); read[i] != want {
				t.Fatalf("after a cut at %d record %d is %q, want %q", at, i, read[i], want)
			}
		}
	}
	last := snapshot(t, a, n-10, 1)
	must(t, a.Trim(limited(t), last))
	wantSnapshot(t, h.open(t), last)
	wantSame(t, follow(t, h.open(t), n-9).take(10), all[n-10:])
}

// testTrimWhileWriting has writers, cuts and readers at once: at every index all read the same record.
func testTrimWhileWriting(t *testing.T, h Harness) {
	const writers, each = 4, 60
	ctx := limited(t)
	var writing sync.WaitGroup
	for w := range writers {
		j := h.open(t)
		writing.Go(func() {
			for i := range each {
				if err := j.Append(ctx, record(fmt.Sprintf("writer-%d", w), i+1)); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	seen := [3]map[journal.Index]string{}
	var reading sync.WaitGroup
	for i := range seen {
		j, all := h.open(t), map[journal.Index]string{}
		seen[i] = all
		reading.Go(func() {
			if err := readTo(ctx, j, writers*each, all); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	cutter := h.open(t)
	for head(t, cutter) < writers*each {
		if at := head(t, cutter); at > 10 {
			must(t, cutter.Trim(limited(t), snapshot(t, cutter, at-10, 2)))
		}
	}
	writing.Wait()
	reading.Wait()
	all := map[journal.Index]string{}
	for _, one := range seen {
		for at, what := range one {
			if known, ok := all[at]; ok && known != what {
				t.Errorf("record %d is %s for one and %s for another", at, known, what)
			}
			all[at] = what
		}
	}
	if different := len(slices.Compact(slices.Sorted(maps.Values(all)))); different != len(all) {
		t.Errorf("%d records at %d indexes", different, len(all))
	}
}

// readTo reads until record last, and goes on behind the snapshot where records were trimmed.
func readTo(ctx context.Context, j journal.Journal, last journal.Index, all map[journal.Index]string) error {
	done := errors.New("done")
	for next := journal.Index(1); ; {
		err := j.Follow(ctx, next, func(batch []journal.Record) error {
			for _, r := range batch {
				if r.Index != next {
					return fmt.Errorf("record %d came, not %d", r.Index, next)
				}
				all[next] = name(r)
				next++
			}
			if next > last {
				return done
			}
			return nil
		})
		switch {
		case errors.Is(err, done):
			return nil
		case !errors.Is(err, journal.ErrTrimmed):
			return err
		}
		s, err := j.Snapshot(ctx)
		if err != nil {
			return err
		}
		if s.Index < next {
			return fmt.Errorf("record %d was said to be trimmed, the snapshot is of %d", next, s.Index)
		}
		if next = s.Index + 1; next > last {
			return nil
		}
	}
}

// testTrimThenResend sends a record again that was trimmed. It may come again, and nothing else goes astray.
func testTrimThenResend(t *testing.T, h Harness) {
	a := h.open(t)
	all := appendAll(t, a, "w", 5)
	must(t, a.Trim(limited(t), snapshot(t, a, 4, 1)))
	must(t, a.Append(limited(t), all[1]))
	must(t, a.Append(limited(t), all[4]))
	last := record("w", 6)
	must(t, a.Append(limited(t), last))
	want := []journal.Record{all[4], last}
	if head(t, a) == 7 {
		want = []journal.Record{all[4], all[1], last}
	}
	wantSame(t, follow(t, h.open(t), 5).take(len(want)), want)
	must(t, a.Trim(limited(t), snapshot(t, a, head(t, a), 1)))
	must(t, a.Append(limited(t), record("w", 7)))
	wantSame(t, follow(t, h.open(t), head(t, a)).take(1), []journal.Record{record("w", 7)})
}

// testRestore begins a journal with a snapshot of another.
func testRestore(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	early, there := follow(t, b, 0), follow(t, b, 1001)
	s := snapshot(t, a, 1000, 2)
	must(t, a.Trim(limited(t), s))
	wantSnapshot(t, b, s)
	if got := head(t, b); got != 1000 {
		t.Errorf("the head is %d, want 1000", got)
	}
	want := appendAll(t, b, "w", 3)
	wantSame(t, there.take(3), want)
	wantSame(t, follow(t, h.open(t), 1002).take(2), want[1:])
	wantError(t, "a reader from the beginning", early.returned(), journal.ErrTrimmed)
	if got := head(t, a); got != 1003 {
		t.Errorf("the head is %d, want 1003", got)
	}
	must(t, a.Trim(limited(t), snapshot(t, a, 1002, 1)))
	wantSame(t, follow(t, h.open(t), 1003).take(1), want[2:])
}

func name(r journal.Record) string { return fmt.Sprintf("%s/%d", r.Writer, r.Seq) }
