// Package journaltest is the contract of journal.Journal as tests and benchmarks: every backend passes the same.
//
// Nothing here sleeps. A test waits for what must happen, and where time itself must pass (a pulse outlives its
// time to live because it is renewed) the end of an abandoned pulse is the clock.
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"starling/journal"
)

// patience bounds every wait: a test that would hang fails instead.
const patience = 30 * time.Second

// Harness is one engine, at first without records and pulses, and the ways to reach it.
type Harness struct {
	// Open returns a journal on the engine, as one more process would have. The suite closes it.
	Open func(testing.TB) journal.Journal
	// PulseTTL is the shortest time to live that the backend keeps to.
	PulseTTL time.Duration
	// PulseSlack is how much later than its time to live the end of a pulse may be seen on a busy machine.
	PulseSlack time.Duration
}

// Run tests a backend; start is called once for every test and releases what it started by Cleanup.
func Run(t *testing.T, start func(testing.TB) Harness) {
	for _, group := range [][]contract{records(), snapshots(), pulses(), seals(), closing()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(t, start(t))
			})
		}
	}
}

// contract is one promise and how it is tested.
type contract struct {
	name string
	test func(*testing.T, Harness)
}

// open returns a journal that is closed with the test.
func (h Harness) open(t testing.TB) journal.Journal {
	t.Helper()
	j := h.Open(t)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

// limited returns a context that ends with the test, or when patience does.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// record is the n-th record of writer, with a payload of its own.
func record(writer string, n int) journal.Record {
	return journal.Record{Writer: writer, Seq: uint64(n), Payload: fmt.Appendf(nil, "%s:%d", writer, n)}
}

// must fails the test at once unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// appendAll appends the first n records of writer, one after the other.
func appendAll(t testing.TB, j journal.Journal, writer string, n int) []journal.Record {
	t.Helper()
	var all []journal.Record
	for i := range n {
		r := record(writer, i+1)
		must(t, j.Append(limited(t), r))
		all = append(all, r)
	}
	return all
}

// head returns the journal's head.
func head(t testing.TB, j journal.Journal) journal.Index {
	t.Helper()
	i, err := j.Head(limited(t))
	must(t, err)
	return i
}

// reader follows a journal. It takes what is delivered only while somebody waits for it.
type reader struct {
	t         testing.TB
	next      journal.Index
	delivered chan []journal.Record
	pending   []journal.Record
	cancel    context.CancelFunc
	ended     chan error
}

// follow starts a reader, which is stopped with the test.
func follow(t testing.TB, j journal.Journal, from journal.Index) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{
		t: t, next: max(from, 1), cancel: cancel,
		delivered: make(chan []journal.Record), ended: make(chan error, 1),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- j.Follow(ctx, from, func(batch []journal.Record) error {
			select {
			case r.delivered <- batch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// take waits for the next n records and checks that their indexes neither skip nor repeat.
func (r *reader) take(n int) []journal.Record {
	r.t.Helper()
	timeout := time.After(patience)
	for len(r.pending) < n {
		select {
		case batch := <-r.delivered:
			r.check(batch)
			r.pending = append(r.pending, batch...)
		case err := <-r.ended:
			r.t.Fatalf("Follow returned %v while %d records were missing", err, n-len(r.pending))
		case <-timeout:
			r.t.Fatalf("%d records delivered, want %d", len(r.pending), n)
		}
	}
	taken := slices.Clone(r.pending[:n])
	r.pending = r.pending[n:]
	return taken
}

// check fails unless batch continues what was delivered.
func (r *reader) check(batch []journal.Record) {
	r.t.Helper()
	if len(batch) == 0 {
		r.t.Fatal("an empty batch was delivered")
	}
	for _, got := range batch {
		if got.Index != r.next {
			r.t.Fatalf("record %s/%d has index %d, want %d", got.Writer, got.Seq, got.Index, r.next)
		}
		r.next++
	}
}

// stop ends the reader and returns what Follow returned.
func (r *reader) stop() error {
	r.t.Helper()
	r.cancel()
	return r.returned()
}

// returned waits for Follow to return.
func (r *reader) returned() error {
	r.t.Helper()
	return await(r.t, r.ended, "the return of Follow")
}

// await returns the next element of c.
func await[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case got := <-c:
		return got
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// wantSame fails unless got holds the records of want, whatever their indexes.
func wantSame(t testing.TB, got, want []journal.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d records, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.Writer != w.Writer || g.Seq != w.Seq || string(g.Payload) != string(w.Payload) {
			t.Fatalf("record %d is %s/%d %.40q, want %s/%d %.40q",
				i, g.Writer, g.Seq, g.Payload, w.Writer, w.Seq, w.Payload)
		}
	}
}

// wantError fails unless err is want.
func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}
