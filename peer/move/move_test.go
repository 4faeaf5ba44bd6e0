package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/journal"
	"starling/journal/memory"
	"starling/peer/sign"
	"starling/replica/report"
	"starling/terms"
)

// TestTakeUp goes on where the journal is at its new place already and the old one is gone: one peer has come, of
// another only the pulse is held there.
func TestTakeUp(t *testing.T) {
	ctx, to := t.Context(), memory.New()
	m := &Move{To: to, Cluster: "flock", Tell: t.Logf}
	if err := m.TakeUp(ctx); !errors.Is(err, ErrOther) {
		t.Errorf("before the journal is there: got %v, want %v", err, ErrOther)
	}
	if _, err := to.Cluster(ctx, m.Cluster); err != nil {
		t.Fatal(err)
	}
	for id, view := range map[string]*report.PulseView{"a~1": {Index: 7}, "b~1": {}} {
		pulse, err := to.Pulse(ctx, id, time.Minute, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := pulse.Publish(ctx, sign.Of("token", view)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.TakeUp(ctx); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, compareEvery)
	defer cancel()
	if here, absent := m.Await(short); here != 1 || !slices.Equal(absent, []string{"b~1"}) {
		t.Errorf("%d have come and %q have not, want one and b~1", here, absent)
	}
}

// TestTakenUpLate takes up what was broken off after the seal so long ago that no pulse lives any more: all peers lead
// their lives on, and it is not said that values were compared.
func TestTakenUpLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		f := newFlock(t, from, "a", "b", "c")
		before := f.lives()
		_, err := from.Seal(t.Context(), "there")
		f.must(err)
		f.stop()
		synctest.Wait()
		<-time.After(time.Minute) // of the test's own clock
		if left, err := from.Pulses(t.Context()); err != nil || len(left) > 0 {
			t.Fatalf("got pulses %v, %v, want none", left, err)
		}

		m, said := f.moveOf(from.Open(), to.Open()), []string{}
		m.Tell = func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
		f.must(m.Check(t.Context()))
		f.must(ignore(m.Do(t.Context())))
		if text := strings.Join(said, "\n"); strings.Contains(text, "have the value") {
			t.Errorf("nothing was compared, and it says %q", text)
		}
		f.start(to)
		f.wantLives(before)
	})
}

// TestHeldOnce takes up what was broken off when it had begun to hold the pulses in the new journal: they live on,
// however little was left of the time that they had.
func TestHeldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		f := newFlock(t, from, "a", "b")
		before := f.lives()
		killed := to.Open()
		first := f.moveOf(from, killed)
		first.held = map[string]journal.Pulse{}
		f.must(first.Check(t.Context()))
		f.must(first.end(t.Context()))
		f.must(first.hold(t.Context()))
		f.must(killed.Close())
		f.stop()
		<-time.After(first.Pulse - time.Second)

		second := f.moveOf(from, to.Open())
		f.must(second.Check(t.Context()))
		f.must(ignore(second.Do(t.Context())))
		<-time.After(first.Pulse / 2)
		f.start(to)
		f.wantLives(before)
	})
}

// TestOlderJournalThere refuses a place with a journal of this cluster that ends before the seal: it was begun there
// once, and no agent has gone on with it.
func TestOlderJournalThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		f := newFlock(t, from, "a")
		f.must(ignore(to.Cluster(t.Context(), "flock")))
		f.must(to.Append(t.Context(), journal.Record{Writer: "w", Seq: 1}))
		f.must(ignore(from.Seal(t.Context(), "there")))
		if err := f.moveOf(from, to).Check(t.Context()); !errors.Is(err, ErrUsed) {
			t.Errorf("got %v, want %v", err, ErrUsed)
		}
	})
}

// TestPeersHaveBegun goes on with a journal that was sealed, when peers have begun elsewhere: nothing begins, neither
// on a machine that is to keep the journal itself, nor where the seal is not heeded.
func TestPeersHaveBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := memory.New()
		f := newFlock(t, from, "a")
		seal, err := from.Seal(t.Context(), "there")
		f.must(err)
		for place, founds := range map[string]bool{"there": true, "elsewhere": false} {
			m := f.moveOf(from, memory.New())
			m.Place, m.Instead, m.Founds = place, place != seal.To, founds
			m.Begun = func(_ context.Context, sealed terms.Index) error { return fmt.Errorf("%w: at %d", ErrBegun, sealed) }
			want := fmt.Sprintf("%v: at %d", ErrBegun, seal.Index)
			if err := m.Check(t.Context()); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %v", place, err, want)
			}
		}
	})
}

// TestNoRoom looks whether the new place has room before anything is changed.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		f := newFlock(t, from, "a")
		to.Bound(200)
		if err := f.moveOf(from, to).Check(t.Context()); !errors.Is(err, ErrRoom) {
			t.Errorf("got %v, want %v", err, ErrRoom)
		}
		to.Bound(1 << 20)
		f.must(f.moveOf(from, to).Check(t.Context()))
	})
}

// refusing is a journal that takes no chunk, or no pulse: it has no room for them, or another user may write there.
type refusing struct {
	*memory.Journal
	chunks, pulses bool
}

var errRefusing = errors.New("not here")

func (r refusing) PutChunk(ctx context.Context, s journal.Snapshot, number uint32, chunk []byte) error {
	if r.chunks {
		return errRefusing
	}
	return r.Journal.PutChunk(ctx, s, number, chunk)
}

func (r refusing) Pulse(ctx context.Context, id string, ttl time.Duration, adopt bool) (journal.Pulse, error) {
	if r.pulses {
		return nil, errRefusing
	}
	return r.Journal.Pulse(ctx, id, ttl, adopt)
}

// TestTriedBeforeTheSeal wants that no journal is sealed for a place that does not take it: it may go elsewhere then.
func TestTriedBeforeTheSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := memory.New()
		f := newFlock(t, from, "a")
		for _, to := range []refusing{{memory.New(), true, false}, {memory.New(), false, true}} {
			m := f.moveOf(from, to)
			f.must(m.Check(t.Context()))
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := m.Do(limited); !errors.Is(err, ErrRoom) || !errors.Is(err, errRefusing) {
				t.Errorf("got %v, want %v: %v", err, ErrRoom, errRefusing)
			}
			cancel()
			if seal, err := from.Seal(t.Context(), ""); err != nil || seal.To != "" {
				t.Fatalf("the seal is %+v, %v", seal, err)
			}
		}
		m := f.moveOf(from, memory.New())
		f.must(m.Check(t.Context()))
		f.must(ignore(m.Do(t.Context())))
	})
}

// TestAwayWithNotice does not wait for a peer that is away with notice.
func TestAwayWithNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(), memory.New()
		f := newFlock(t, from, "a", "b")
		f.must(f.peers["b"].GoAway(t.Context(), time.Hour))
		f.peers["b"].Stop()
		delete(f.ids, "b")
		m := f.moveOf(from, to.Open())
		f.must(m.Check(t.Context()))
		f.must(ignore(m.Do(t.Context())))
		f.stop()
		f.start(to)
		limited, cancel := context.WithTimeout(t.Context(), m.Pulse)
		defer cancel()
		if here, absent := m.Await(limited); here != 1 || len(absent) > 0 {
			t.Errorf("%d have come, and %q are awaited", here, absent)
		}
	})
}

// TestTwoAtOnce moves a journal to two places: the second is told where the journal goes on, and nothing else.
func TestTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := memory.New()
		f := newFlock(t, from, "a")
		first, second := f.moveOf(from, memory.New()), f.moveOf(from, memory.New())
		second.Place = "elsewhere"
		f.must(first.Check(t.Context()))
		f.must(second.Check(t.Context()))
		at, err := first.Do(t.Context())
		f.must(err)
		want := fmt.Sprintf("%v: at entry %d, to there", ErrElsewhere, at)
		if _, err := second.Do(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %v", err, want)
		}
	})
}
