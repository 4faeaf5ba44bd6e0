package peer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/journal"
	"starling/journal/memory"
	"starling/peer/identity"
	"starling/peer/outbox"
	"starling/terms"
)

func twin(t *testing.T, shared *memory.Journal, known identity.Remembered) *Peer {
	t.Helper()
	return &Peer{config: Config{Node: "a", Journal: shared, PulseTTL: time.Minute,
		Identity: &identity.Memory{Known: known}}}
}

func wantLife(t *testing.T, got life, id terms.PeerID, starts uint32) {
	t.Helper()
	if got.err != nil || got.peer != id || got.known.Starts != starts {
		t.Fatalf("got %s at start %d and %v, want %s at start %d", got.peer, got.known.Starts, got.err, id, starts)
	}
}

// Two machines were given one name and start for the first time: the second must not take up the pulse of the first as
// if it were its own, however often it tries.
func TestAPulseThatAnotherCreatedIsNotTakenUp(t *testing.T) {
	shared := memory.New()
	wantLife(t, twin(t, shared, identity.Remembered{}).findLife(t.Context(), past{0, 1}), "a~1", 0)
	p := twin(t, shared, identity.Remembered{})
	if got := p.findLife(t.Context(), past{0, 1}); !errors.Is(got.err, journal.ErrPulseTaken) {
		t.Fatalf("the first try gives %+v, want %v", got, journal.ErrPulseTaken)
	}
	wantLife(t, p.findLife(t.Context(), past{0, 1}), "a~2", 0)
	wantLife(t, p.findLife(t.Context(), past{0, 1}), "a~3", 0) // the journal may know that another was a~2
	p.config.Identity = &identity.Memory{Known: identity.Remembered{Incarnation: 3, Starts: 1,
		Token: p.config.Identity.(*identity.Memory).Known.Token}}
	wantLife(t, p.findLife(t.Context(), past{0, 1}), "a~3", 2)
}

// A machine comes back when its own pulse has ended and another machine with its name has the same life since.
func TestAPulseOfTheSameLifeThatAnotherCreatedIsNotTakenUp(t *testing.T) {
	shared := memory.New()
	wantLife(t, twin(t, shared, identity.Remembered{}).findLife(t.Context(), past{0, 1}), "a~1", 0)
	mine := identity.Remembered{Incarnation: 1, Starts: 1, Token: "mine"}
	wantLife(t, twin(t, shared, mine).findLife(t.Context(), past{0, 1}),
		"a~2", 0)
}

func TestAPeerWhosePulseIsTakenBeginsAnotherLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		thief, err := f.shared.Pulse(t.Context(), "a~1", 3*time.Second, true)
		if err != nil {
			t.Fatal(err)
		}
		f.await("b", "a lives as a~2", func(s *cluster.State) bool {
			known := s.NodeOf("a").LastSeq(2) > 0
			if known {
				thief.Abandon()
			}
			return known
		})
		f.await("b", "a~2 is a member", func(s *cluster.State) bool { return s.IsMember("a~2") })
	})
}

// A machine is cut off while it reads the journal for a new life, and another of its name has that life's pulse since.
func TestALifeWhosePulseWasLostMeanwhileIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		p := f.peers["a"]
		mine, err := f.shared.Pulse(t.Context(), "a~9", time.Minute, false)
		if err != nil {
			t.Fatal(err)
		}
		next := life{peer: "a~9", known: identity.Remembered{Incarnation: 9}, pulse: mine, fresh: true}
		if _, err := p.confirm(t.Context(), &next); err != nil {
			t.Fatalf("a pulse that beats is not enough: %v", err)
		}
		thief, err := f.shared.Pulse(t.Context(), "a~9", time.Minute, true)
		if err != nil {
			t.Fatal(err)
		}
		defer thief.Abandon()
		if _, err := p.confirm(t.Context(), &next); !errors.Is(err, journal.ErrNoPulse) {
			t.Fatalf("a life whose pulse is another's is confirmed: %v", err)
		}
	})
}

// A machine was removed before anything counted that it wrote, was emptied and is let in again: it is the same life,
// and must not wait for an entry which the journal takes for the one that it has.
func TestALifeThatIsLedAgainWritesUnderOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		old := journal.Record{Writer: "b~1", Seq: outbox.Sequence(1) + 1, Payload: []byte("what did not count")}
		if err := f.shared.Append(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		f.add("b")
		f.await("a", "b~1 is a member", func(s *cluster.State) bool { return s.IsMember("b~1") })
	})
}
