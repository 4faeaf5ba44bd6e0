package peer

import (
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/identity"
	"starling/peer/inbox"
	"starling/replica/reaction"
	"starling/terms"
)

// spread starts three instances on three peers, and lets one of them go away with notice.
func spread(t *testing.T, within time.Duration) (f *flock, before []reaction.Assignment) {
	f = newFlock(t, "a", "b", "c")
	f.submit("a", job("web", terms.Stateless, 3, "run"))
	f.await("a", "it runs", running("web", 3))
	s := f.await("b", "it runs", running("web", 3))
	before = reaction.ViewOf(s, f.peers["b"].Self())
	if len(before) != 1 {
		t.Fatalf("%d instances on b, want one", len(before))
	}
	if err := f.peers["b"].GoAway(t.Context(), within); err != nil {
		t.Fatal(err)
	}
	f.crash("b")
	return f, before
}

func TestWhatAnAbsentPeerRunsStaysItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, before := spread(t, 10*time.Minute)
		defer f.stop()
		inbox.Pause(t.Context(), time.Minute) // its pulse ends after 3 seconds
		f.submit("a", job("more", terms.Stateless, 2, "run"))
		f.await("a", "others run what comes meanwhile", running("more", 2))
		f.start("b")
		f.ready("b")
		s := f.await("b", "it is back", func(s *cluster.State) bool { return s.NodeOf("b").Offer.Open() })
		if after := reaction.ViewOf(s, f.peers["b"].Self()); len(after) != 1 || after[0].ID != before[0].ID {
			t.Errorf("it had %v and has %v", before, after)
		}
		inbox.Pause(t.Context(), time.Minute)
		if s := f.await("a", "it is there", running("web", 3)); !s.IsMember("b~1") {
			t.Error("it left when it was back")
		}
	})
}

func TestWhoStaysAwayForTooLongHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, before := spread(t, 10*time.Minute)
		defer f.stop()
		inbox.Pause(t.Context(), 9*time.Minute)
		if s := f.await("a", "it runs", running("web", 3)); !s.IsMember("b~1") {
			t.Fatal("it left before its time was over")
		}
		f.await("a", "its work is another's", func(s *cluster.State) bool {
			return !s.IsMember("b~1") && running("web", 3)(s)
		})
		f.start("b")
		f.ready("b")
		if self := f.peers["b"].Self(); self != "b~2" {
			t.Errorf("it is %s, want a new life", self)
		}
		inbox.Pause(t.Context(), 10*time.Second)
		for _, status := range fake.Open(f.machines["b"]).Tasks() {
			if status.ID == before[0].ID.String() && status.State == driver.Running {
				t.Error("what another has now runs on")
			}
		}
	})
}

func TestAnAbsentPeerThatForgotItsLifeIsBackInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := spread(t, 10*time.Minute)
		defer f.stop()
		f.ids["b"] = &identity.Memory{}
		began := time.Now()
		f.start("b")
		f.ready("b")
		f.await("a", "all runs", running("web", 3))
		if took := time.Since(began); f.peers["b"].Self() != "b~2" || took > time.Minute {
			t.Errorf("it is %s after %v", f.peers["b"].Self(), took)
		}
	})
}
