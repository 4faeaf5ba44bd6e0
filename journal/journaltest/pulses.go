package journaltest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/journal"
)

func pulses() []contract {
	return []contract{
		{"PulseTaken", testPulseTaken},
		{"PulseRefused", testPulseRefused},
		{"PulseAbandoned", testPulseAbandoned},
		{"PulseRenewed", testPulseRenewed},
		{"PulseEnded", testPulseEnded},
		{"PulseAdopted", testPulseAdopted},
		{"PulseAdoptedFromTheLiving", testPulseAdoptedFromTheLiving},
		{"PulseConfirmed", testPulseConfirmed},
		{"PulseValues", testPulseValues},
		{"PulseEndNotSkipped", testPulseEndNotSkipped},
		{"PulseList", testPulseList},
	}
}

// begin creates a pulse.
func (h Harness) begin(t testing.TB, j journal.Journal, id string) journal.Pulse {
	t.Helper()
	p, err := j.Pulse(limited(t), id, h.PulseTTL, false)
	must(t, err)
	return p
}

// pass waits for a time to live: that of a pulse made and abandoned now. An older one that nobody renews ends before.
func (h Harness) pass(t testing.TB, j journal.Journal) {
	t.Helper()
	w := watch(t, j, "clock")
	p := h.begin(t, j, "clock")
	w.until(true)
	p.Abandon()
	w.until(false)
}

// watcher watches a pulse. It takes a change only while somebody waits for it.
type watcher struct {
	t      testing.TB
	states chan journal.PulseState
	ended  chan error
}

// watch starts a watcher, which is stopped with the test.
func watch(t testing.TB, j journal.Journal, id string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, states: make(chan journal.PulseState), ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- j.WatchPulse(ctx, id, func(s journal.PulseState) {
			if s.ID != id {
				t.Errorf("watch of %s tells of %s", id, s.ID)
			}
			select {
			case w.states <- s:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// next returns the next change.
func (w *watcher) next() journal.PulseState {
	w.t.Helper()
	return await(w.t, w.states, "a change of the pulse")
}

// until takes changes until the pulse lives, or does not.
func (w *watcher) until(alive bool) journal.PulseState {
	w.t.Helper()
	for {
		if s := w.next(); s.Alive == alive {
			return s
		}
	}
}

// value takes changes until the value is want; the pulse must not end meanwhile.
func (w *watcher) value(want string) {
	w.t.Helper()
	for {
		s := w.next()
		if !s.Alive {
			w.t.Fatalf("the pulse %s ended, want value %q", s.ID, want)
		}
		if string(s.Value) == want {
			return
		}
	}
}

// wantLost fails unless p is lost, or is found so.
func wantLost(t testing.TB, p journal.Pulse) {
	t.Helper()
	await(t, p.Lost(), "the pulse to be lost")
}

// wantKept fails if p is lost.
func wantKept(t testing.TB, p journal.Pulse) {
	t.Helper()
	select {
	case <-p.Lost():
		t.Error("the pulse is lost")
	default:
	}
}

func testPulseTaken(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	if _, err := a.Pulse(limited(t), "p", h.PulseTTL, true); true {
		wantError(t, "adopt what is not there", err, journal.ErrNoPulse)
	}
	p := h.begin(t, a, "p")
	for _, j := range []journal.Journal{a, b} {
		_, err := j.Pulse(limited(t), "p", h.PulseTTL, false)
		wantError(t, "create it twice", err, journal.ErrPulseTaken)
	}
	wantKept(t, p)
	h.begin(t, b, "another")
}

func testPulseRefused(t *testing.T, h Harness) {
	a := h.open(t)
	for _, id := range []string{"", "a/b", strings.Repeat("p", 256)} {
		_, err := a.Pulse(limited(t), id, h.PulseTTL, false)
		wantError(t, "pulse "+id, err, journal.ErrName)
		wantError(t, "watch "+id, a.WatchPulse(limited(t), id, func(journal.PulseState) {}), journal.ErrName)
	}
	if _, err := a.Pulse(limited(t), "p", 0, false); err == nil {
		t.Error("a pulse without time to live was created")
	}
	p := h.begin(t, a, "p")
	must(t, p.Publish(limited(t), make([]byte, journal.ValueBytesMax)))
	err := p.Publish(limited(t), make([]byte, journal.ValueBytesMax+1))
	wantError(t, "too large a value", err, journal.ErrTooLarge)
}

func testPulseAbandoned(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	w := watch(t, b, "p")
	p := h.begin(t, a, "p")
	w.until(true)
	began := time.Now()
	p.Abandon()
	wantError(t, "publish after abandon", p.Publish(limited(t), nil), journal.ErrNoPulse)
	w.until(false)
	if took := time.Since(began); took > h.PulseTTL+h.PulseSlack {
		t.Errorf("it ended after %v, want at most %v + %v", took, h.PulseTTL, h.PulseSlack)
	}
	p.Abandon()
	h.begin(t, b, "p")
	w.until(true)
}

func testPulseRenewed(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	p := h.begin(t, a, "p")
	w := watch(t, b, "p")
	if s := w.next(); !s.Alive {
		t.Fatal("a watch that begins now does not see it")
	}
	h.pass(t, a)
	wantKept(t, p)
	// A change that comes now is the first: it has not ended meanwhile.
	must(t, p.Publish(limited(t), []byte("still here")))
	if s := w.next(); !s.Alive || string(s.Value) != "still here" {
		t.Errorf("got %+v, want it alive", s)
	}
}

func testPulseEnded(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	w := watch(t, b, "p")
	p := h.begin(t, a, "p")
	w.until(true)
	must(t, p.End(limited(t)))
	if alive, err := b.Pulses(limited(t)); err != nil || len(alive) != 0 {
		t.Errorf("after the end: %v, %v, want none", alive, err)
	}
	w.until(false)
	must(t, p.End(limited(t)))
	wantError(t, "publish after the end", p.Publish(limited(t), nil), journal.ErrNoPulse)

	again := h.begin(t, b, "p")
	w.until(true)
	must(t, p.End(limited(t)))
	must(t, again.Publish(limited(t), []byte("mine")))
	w.value("mine")
	wantKept(t, p)
}

// testPulseAdopted has a restarted process take over the pulse that its crashed forerunner left.
func testPulseAdopted(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	p := h.begin(t, a, "p")
	must(t, p.Publish(limited(t), []byte("before")))
	w := watch(t, b, "p")
	w.value("before")
	p.Abandon()
	q, err := b.Pulse(limited(t), "p", h.PulseTTL, true)
	must(t, err)
	alive, err := a.Pulses(limited(t))
	must(t, err)
	if len(alive) != 1 || string(alive[0].Value) != "before" {
		t.Errorf("pulses after the adoption are %v, want one with its value", alive)
	}
	h.pass(t, a)
	wantKept(t, q)
	must(t, p.End(limited(t))) // no longer its own
	must(t, q.Publish(limited(t), []byte("after")))
	w.value("after")
}

func testPulseAdoptedFromTheLiving(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	p := h.begin(t, a, "p")
	w := watch(t, a, "p")
	q, err := b.Pulse(limited(t), "p", h.PulseTTL, true)
	must(t, err)
	wantLost(t, p)
	wantError(t, "publish with what another adopted", p.Publish(limited(t), []byte("p")), journal.ErrNoPulse)
	must(t, p.End(limited(t)))
	p.Abandon()
	must(t, q.Publish(limited(t), []byte("q")))
	w.value("q")
	wantKept(t, q)
}

func testPulseConfirmed(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	p := h.begin(t, a, "p")
	must(t, p.Confirm(limited(t)))
	q, err := b.Pulse(limited(t), "p", h.PulseTTL, true)
	must(t, err)
	must(t, q.Confirm(limited(t)))
	wantError(t, "confirm what another adopted", p.Confirm(limited(t)), journal.ErrNoPulse)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if q.Confirm(canceled) == nil {
		t.Error("it was confirmed without being looked at")
	}
	must(t, q.End(limited(t)))
	wantError(t, "confirm after the end", q.Confirm(limited(t)), journal.ErrNoPulse)
	again := h.begin(t, a, "p")
	must(t, again.Confirm(limited(t)))
	wantError(t, "confirm what another has begun", q.Confirm(limited(t)), journal.ErrNoPulse)
	again.Abandon()
	wantError(t, "confirm after abandon", again.Confirm(limited(t)), journal.ErrNoPulse)
}

func testPulseValues(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	w := watch(t, b, "p")
	if s := w.next(); s.Alive || s.Value != nil {
		t.Errorf("before anything a watch shows %+v", s)
	}
	p := h.begin(t, a, "p")
	if s := w.until(true); len(s.Value) != 0 {
		t.Errorf("value %q, want none", s.Value)
	}
	for _, v := range []string{"one", "two", ""} {
		must(t, p.Publish(limited(t), []byte(v)))
		w.value(v)
	}
	must(t, p.Publish(limited(t), []byte("three")))
	w.value("three")
	late := watch(t, a, "p")
	if s := late.next(); !s.Alive || string(s.Value) != "three" {
		t.Errorf("a late watch shows %+v at first", s)
	}
	must(t, p.End(limited(t)))
	for _, w := range []*watcher{w, late} {
		if s := w.until(false); s.Value != nil {
			t.Errorf("a pulse that ended shows %q", s.Value)
		}
	}
}

// testPulseEndNotSkipped has a pulse end and begin anew while a watcher is busy.
func testPulseEndNotSkipped(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	p := h.begin(t, a, "p")
	w, quick := watch(t, b, "p"), watch(t, b, "p")
	quick.until(true)
	if !w.next().Alive {
		t.Fatal("it does not live")
	}
	must(t, p.Publish(limited(t), []byte("busy with this")))
	quick.value("busy with this")
	must(t, p.End(limited(t)))
	q := h.begin(t, a, "p")
	must(t, q.Publish(limited(t), []byte("anew")))
	quick.until(false)
	quick.value("anew")
	w.until(false)
	w.value("anew")
}

func testPulseList(t *testing.T, h Harness) {
	a, b := h.open(t), h.open(t)
	ids := []string{"n-1", "a", "n-10", "n-1-1"}
	for i, id := range ids {
		p := h.begin(t, []journal.Journal{a, b}[i%2], id)
		must(t, p.Publish(limited(t), []byte("of "+id)))
	}
	slices.Sort(ids)
	alive, err := b.Pulses(limited(t))
	must(t, err)
	if len(alive) != len(ids) {
		t.Fatalf("%d pulses, want %d", len(alive), len(ids))
	}
	for i, s := range alive {
		if s.ID != ids[i] || !s.Alive || !bytes.Equal(s.Value, []byte("of "+ids[i])) {
			t.Errorf("pulse %d is %+v, want %s", i, s, ids[i])
		}
	}
}
