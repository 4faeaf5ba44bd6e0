package forecast_test

import (
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/replica/forecast"
	"starling/terms"
)

// TestCompareTellsWhatComesTrue imagines that a machine of random crowds dies: what was imagined comes true if so
// and nothing is changed by imagining it.
func TestCompareTellsWhatComesTrue(t *testing.T) {
	differ := 0
	for seed := range uint64(60) {
		h := newCrowd(seed)
		h.enter("last", terms.Resources{8000, 8 << 30, 0})
		for number := range 6 {
			h.submit(number)
		}
		digest := h.s.Digest()
		found := forecast.Compare(h.s, &forecast.Change{Commands: []command.Command{&command.Leave{Peer: "n0~1"}}}, nil)
		if h.s.Digest() != digest {
			t.Fatalf("seed %d: imagining changed the value", seed)
		}
		if found.Refusal.Code != facts.OK || !found.Complete {
			t.Fatalf("seed %d: refused: %+v, complete: %v", seed, found.Refusal, found.Complete)
		}
		happens := h.s.Copy()
		seq := happens.NodeOf("last").LastSeq(1) + 1
		replica.Apply(happens, happens.Index+1, &command.Entry{Writer: "last~1", Seq: seq, Time: happens.Time,
			Commands: []command.Command{&command.Leave{Peer: "n0~1"}}}, false)
		then := forecast.Compare(happens, &forecast.Change{}, nil)
		if got, want := placed(found.With), placed(then.Without); got != want {
			t.Errorf("seed %d: imagined\n%s\nbut it comes to\n%s", seed, got, want)
		}
		if placed(found.With) != placed(found.Without) {
			differ++
		}
		if node := found.With.NodeOf("n0"); node.Peer != "" || len(node.Held) > 0 {
			t.Errorf("seed %d: the machine that dies runs %d", seed, len(node.Held))
		}
	}
	if differ < 10 {
		t.Errorf("only %d of the seeds are about anything", differ)
	}
}

// placed says which node runs which slot.
func placed(s *cluster.State) string {
	text := ""
	for n := range facts.NodeIndex(s.Nodes()) {
		text += string(s.Node(n).Name) + ":"
		for _, r := range s.Node(n).Held {
			text += " " + s.NameOf(r).String()
		}
		text += "\n"
	}
	return text
}

// TestCompareNeedsAMember imagines that all machines die.
func TestCompareNeedsAMember(t *testing.T) {
	h := newCrowd(1)
	c := &forecast.Change{}
	h.s.EachMember(func(p terms.PeerID) bool {
		c.Commands = append(c.Commands, &command.Leave{Peer: p})
		return true
	})
	if found := forecast.Compare(h.s, c, nil); found.Refusal.Reason != "no machine of the cluster would be left" {
		t.Errorf("got %+v", found.Refusal)
	}
	c.Add = []forecast.Machine{{Name: "new", Offer: terms.Offer{Capacity: terms.Resources{1000, 1 << 30, 0}, Rules: 1}}}
	if found := forecast.Compare(h.s, c, nil); found.Refusal.Code != facts.OK || found.With.NodeOf("new").Peer == "" {
		t.Errorf("with a machine that joins: got %+v", found.Refusal)
	}
}

// TestEnough stops forecasts at once: nothing is imagined but the change, and they are not complete.
func TestEnough(t *testing.T) {
	h := newCrowd(3)
	h.enter("last", terms.Resources{8000, 8 << 30, 0})
	for number := range 6 {
		h.submit(number)
	}
	enough := func() bool { return true }
	leave := &command.Leave{Peer: "n0~1"}
	found := forecast.Compare(h.s, &forecast.Change{Commands: []command.Command{leave}}, enough)
	if found.Complete || found.With.Index != h.s.Index+1 || found.Without.Index != h.s.Index {
		t.Errorf("complete is %v after %d entries", found.Complete, found.With.Index-h.s.Index)
	}
	f := forecast.Of(h.s, &command.TellTime{}, "", enough)
	if f.Complete || f.End.Index != h.s.Index+1 {
		t.Errorf("complete is %v after %d entries", f.Complete, f.End.Index-h.s.Index)
	}
	if f = forecast.Of(h.s, &command.TellTime{}, "", nil); f.End.Index == h.s.Index+1 {
		t.Error("nothing is to be imagined here")
	}
}
