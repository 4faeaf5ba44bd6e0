package journaltest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"starling/journal"
)

const (
	// historyWriters is how many append at once, each by a journal of its own; as many ask for the head, and two read.
	historyWriters = 3
	// historyLeast is how many records each appends before and after what disturbs the engine.
	historyLeast = 30
	// historyPace is the time between two of one's calls: what takes long must not make more than can be checked.
	historyPace = 5 * time.Millisecond
	// historyAttempt is how long a call may take before it is given up, and not known what came of it.
	historyAttempt = 3 * time.Second
	// historyPatience bounds everything, elections included.
	historyPatience = 3 * time.Minute
)

// History appends, asks and reads at once while disturb does to the engine what may happen to it. Then it checks that
// all answers fit one order of all calls, in which each has its place between its begin and its end: the records' own.
func History(t *testing.T, h Harness, disturb func()) {
	ctx, cancel := context.WithTimeout(t.Context(), historyPatience)
	defer cancel()
	r := &recorder{t: t, began: time.Now(), disturbed: make(chan struct{})}
	var working, reading sync.WaitGroup
	var warm sync.WaitGroup
	for w := range historyWriters {
		writes, asks := h.open(t), h.open(t)
		warm.Add(1)
		working.Go(func() { r.write(ctx, writes, fmt.Sprintf("writer-%d", w), warm.Done) })
		working.Go(func() { r.ask(ctx, asks) })
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	for range 2 {
		j := h.open(t)
		reading.Go(func() { r.read(following, j) })
	}
	warm.Wait()
	disturb()
	close(r.disturbed)
	working.Wait()
	if t.Failed() {
		return
	}
	order := r.order(ctx, h.open(t))
	stop()
	reading.Wait()
	t.Logf("%d calls, %d records", len(r.calls), len(order))
	if got := fits(r.calls, order); got != porcupine.Ok {
		t.Errorf("the history is not that of one order: %s", got)
	}
}

// The calls of a history.
type (
	appended  struct{ record string }
	headAsked struct{}
	delivered struct{ record string } // at the index that is its answer
)

// recorder notes calls and their answers.
type recorder struct {
	t         *testing.T
	began     time.Time
	disturbed chan struct{} // closed when the engine is left alone again

	mu    sync.Mutex
	calls []porcupine.Operation
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// note notes a call that began at some time. An answer of nil is none: it may still come true at any time.
func (r *recorder) note(began int64, call, answer any) {
	ended := r.now()
	if answer == nil {
		ended = int64(historyPatience)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, porcupine.Operation{
		ClientId: len(r.calls), Input: call, Call: began, Output: answer, Return: ended,
	})
}

// write appends records, each until that has succeeded, and calls warm when it has appended enough to begin.
func (r *recorder) write(ctx context.Context, j journal.Journal, writer string, warm func()) {
	pace := time.NewTicker(historyPace)
	defer pace.Stop()
	for n, after := 1, 0; after < historyLeast; n++ {
		rec := record(writer, n)
		for {
			began := r.now()
			short, cancel := context.WithTimeout(ctx, historyAttempt)
			err := j.Append(short, rec)
			cancel()
			if err == nil {
				r.note(began, appended{name(rec)}, true)
				break
			}
			r.note(began, appended{name(rec)}, nil)
			if ctx.Err() != nil {
				r.t.Errorf("append %s: %v", name(rec), err)
				break
			}
		}
		if n == historyLeast || ctx.Err() != nil && n < historyLeast {
			warm()
		}
		select {
		case <-ctx.Done():
			return
		case <-r.disturbed:
			after++
		default:
		}
		<-pace.C
	}
}

// ask asks for the head again and again.
func (r *recorder) ask(ctx context.Context, j journal.Journal) {
	pace := time.NewTicker(historyPace)
	defer pace.Stop()
	for after := 0; after < historyLeast && ctx.Err() == nil; <-pace.C {
		began := r.now()
		short, cancel := context.WithTimeout(ctx, historyAttempt)
		head, err := j.Head(short)
		cancel()
		if err == nil {
			r.note(began, headAsked{}, head)
		}
		select {
		case <-r.disturbed:
			after++
		default:
		}
	}
}

// read notes what is delivered: it was there by then.
func (r *recorder) read(ctx context.Context, j journal.Journal) {
	err := j.Follow(ctx, 0, func(batch []journal.Record) error {
		for _, got := range batch {
			r.note(r.now(), delivered{name(got)}, got.Index)
		}
		return nil
	})
	if ctx.Err() == nil {
		r.t.Errorf("follow: %v", err)
	}
}

// order returns the index of every record.
func (r *recorder) order(ctx context.Context, j journal.Journal) map[string]journal.Index {
	head, err := j.Head(ctx)
	must(r.t, err)
	read := map[journal.Index]string{}
	must(r.t, readTo(ctx, j, head, read))
	order := make(map[string]journal.Index)
	for at, record := range read {
		if other, twice := order[record]; twice {
			r.t.Fatalf("record %s is at %d and at %d", record, other, at)
		}
		order[record] = at
	}
	return order
}

// fits tells whether calls fit an order.
func fits(calls []porcupine.Operation, order map[string]journal.Index) porcupine.CheckResult {
	model := porcupine.Model{
		Init: func() any { return journal.Index(0) }, // the head
		Step: func(state, call, answer any) (bool, any) {
			head := state.(journal.Index)
			switch c := call.(type) {
			case appended:
				at, is := order[c.record]
				if is && at == head+1 {
					return true, at
				}
				// A resend finds it there. What was not answered may have done nothing.
				return answer == nil || is && at <= head, head
			case delivered:
				return answer == order[c.record] && answer.(journal.Index) <= head, head
			default:
				return answer == head, head
			}
		},
	}
	return porcupine.CheckOperationsTimeout(model, calls, historyPatience)
}
