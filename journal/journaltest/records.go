package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"starling/journal"
)

func records() []contract {
	return []contract{
		{"Empty", testEmpty},
		{"Order", testOrder},
		{"ConcurrentWriters", testConcurrentWriters},
		{"Resend", testResend},
		{"FollowFrom", testFollowFrom},
		{"FollowEnds", testFollowEnds},
		{"Refused", testRefused},
		{"LargePayloads", testLargePayloads},
		{"SlowReader", testSlowReader},
		{"HeadLinearizable", testHeadLinearizable},
	}
}

func testEmpty(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	if got := head(t, a); got != 0 {
		t.Errorf("head of an empty journal is %d, want 0", got)
	}
	r := follow(t, a, 0)
	want := appendAll(t, b, "w", 1)
	wantSame(t, r.take(1), want)
}

func testOrder(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	early := follow(t, b, 0)
	want := appendAll(t, a, "w", 50)
	wantSame(t, early.take(50), want)
	wantSame(t, follow(t, a, 0).take(50), want)
	wantSame(t, follow(t, h.open(t), 1).take(50), want)
}

// testConcurrentWriters has readers on every journal, from before, amid and after the writing, and they agree.
func testConcurrentWriters(t *testing.T, h Harness) {
	const writers, each = 8, 25
	journals := []journal.Journal{h.open(t), h.open(t), h.open(t)}
	readers := []*reader{follow(t, journals[0], 0), follow(t, journals[1], 0)}

	ctx := limited(t)
	half := make(chan struct{}, writers)
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			failed <- appendEach(ctx, journals[w%len(journals)], fmt.Sprintf("writer-%d", w), each, half)
		}()
	}
	for range writers {
		await(t, half, "every writer to be half done")
	}
	readers = append(readers, follow(t, journals[2], 0))
	for range writers {
		must(t, await(t, failed, "a writer"))
	}
	readers = append(readers, follow(t, journals[0], 0))

	want := readers[0].take(writers * each)
	wantPerWriterOrder(t, want, writers, each)
	for _, r := range readers[1:] {
		wantSame(t, r.take(writers*each), want)
	}
	for _, j := range journals {
		if got := head(t, j); got != writers*each {
			t.Errorf("head is %d, want %d", got, writers*each)
		}
	}
}

// appendEach appends n records of writer, and tells half when half of them are.
func appendEach(ctx context.Context, j journal.Journal, writer string, n int, half chan<- struct{}) error {
	for i := range n {
		if err := j.Append(ctx, record(writer, i+1)); err != nil {
			return err
		}
		if i == n/2 {
			half <- struct{}{}
		}
	}
	return nil
}

func wantPerWriterOrder(t *testing.T, got []journal.Record, writers, each int) {
	t.Helper()
	last := make(map[string]uint64)
	for _, r := range got {
		if r.Seq != last[r.Writer]+1 {
			t.Fatalf("writer %s: seq %d follows %d", r.Writer, r.Seq, last[r.Writer])
		}
		last[r.Writer] = r.Seq
	}
	for w, n := range last {
		if n != uint64(each) {
			t.Errorf("writer %s has %d records, want %d", w, n, each)
		}
	}
	if len(last) != writers {
		t.Errorf("%d writers, want %d", len(last), writers)
	}
}

func testResend(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	first, second, others := record("w", 7), record("w", 900), record("w2", 7)
	must(t, a.Append(limited(t), first))
	must(t, a.Append(limited(t), first))
	must(t, b.Append(limited(t), first))

	ctx := limited(t)
	var sending sync.WaitGroup
	for i := range 8 {
		sending.Go(func() {
			if err := []journal.Journal{a, b}[i%2].Append(ctx, second); err != nil {
				t.Errorf("append again: %v", err)
			}
		})
	}
	sending.Wait()
	must(t, b.Append(limited(t), others))

	again := h.open(t)
	must(t, again.Append(limited(t), first))
	must(t, again.Append(limited(t), second))
	if got := head(t, again); got != 3 {
		t.Errorf("head is %d, want 3", got)
	}
	last := record("w", 901)
	must(t, again.Append(limited(t), last))
	want := []journal.Record{first, second, others, last}
	wantSame(t, follow(t, a, 0).take(4), want)
	wantSame(t, follow(t, again, 0).take(4), want)
}

func testFollowFrom(t *testing.T, h Harness) {
	a := h.open(t)
	want := appendAll(t, a, "w", 20)
	for _, from := range []journal.Index{0, 1, 2, 10, 20} {
		skipped := int(max(from, 1)) - 1
		wantSame(t, follow(t, a, from).take(20-skipped), want[skipped:])
	}
	next, beyond := follow(t, a, 21), follow(t, h.open(t), 25)
	follow(t, a, math.MaxUint64) // waits for what never comes
	for i := 21; i <= 30; i++ {
		r := record("w", i)
		must(t, a.Append(limited(t), r))
		want = append(want, r)
	}
	wantSame(t, next.take(10), want[20:])
	wantSame(t, beyond.take(6), want[24:])
}

func testFollowEnds(t *testing.T, h Harness) {
	a := h.open(t)
	appendAll(t, a, "w", 3)
	idle := follow(t, a, 0)
	idle.take(3)
	wantError(t, "Follow whose context ended", idle.stop(), context.Canceled)

	enough := errors.New("enough")
	err := a.Follow(limited(t), 2, func(batch []journal.Record) error {
		if batch[0].Index != 2 {
			t.Errorf("first index is %d, want 2", batch[0].Index)
		}
		return enough
	})
	wantError(t, "Follow whose deliver failed", err, enough)
}

func testRefused(t *testing.T, h Harness) {
	a := h.open(t)
	large := journal.Record{Writer: "w", Seq: 1, Payload: make([]byte, journal.PayloadBytesMax+1)}
	wantError(t, "too large a payload", a.Append(limited(t), large), journal.ErrTooLarge)
	for _, writer := range []string{"", "a/b", strings.Repeat("w", 256)} {
		wantError(t, "writer "+writer, a.Append(limited(t), record(writer, 1)), journal.ErrName)
	}
	longest := strings.Repeat("w", 255)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "append without time", a.Append(over, record(longest, 1)), context.Canceled)

	// What was refused left nothing. What was given up may have left its record, so it is sent again.
	want := appendAll(t, a, longest, 2)
	if got := head(t, a); got != 2 {
		t.Errorf("head is %d, want 2", got)
	}
	wantSame(t, follow(t, a, 0).take(2), want)
}

func testLargePayloads(t *testing.T, h Harness) {
	a := h.open(t)
	early := follow(t, h.open(t), 0)
	want := []journal.Record{{Writer: "w", Seq: 1}}
	for seq := uint64(2); seq <= 13; seq++ {
		payload := make([]byte, journal.PayloadBytesMax)
		payload[0], payload[len(payload)-1] = byte(seq), byte(seq)
		want = append(want, journal.Record{Writer: "w", Seq: seq, Payload: payload})
	}
	for _, r := range want {
		must(t, a.Append(limited(t), r))
	}
	wantSame(t, early.take(len(want)), want)
	wantSame(t, follow(t, a, 0).take(len(want)), want)
}

func testSlowReader(t *testing.T, h Harness) {
	const n = 200
	a := h.open(t)
	slow := follow(t, a, 0) // blocks in deliver until something is taken from it
	fast := follow(t, a, 0)
	appendAll(t, a, "w", 1)
	wantSame(t, slow.take(1), fast.take(1))
	for i := 2; i <= n; i++ {
		must(t, a.Append(limited(t), record("w", i)))
	}
	want := fast.take(n - 1)
	wantSame(t, slow.take(n-1), want)
}

func testHeadLinearizable(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	for i := 1; i <= 30; i++ {
		must(t, a.Append(limited(t), record("w", i)))
		if got := head(t, b); got != journal.Index(i) {
			t.Fatalf("after append %d the head seen elsewhere is %d", i, got)
		}
	}
}
