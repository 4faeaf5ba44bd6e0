package peer

import (
	"errors"
	"strings"
	"testing"

	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer/outbox"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
)

// alone returns a core that is the only member, at entry 1.
func alone(t *testing.T) *Core {
	t.Helper()
	c := NewCore(terms.DefaultLimits())
	c.Begin("a~1", 0, &terms.Offer{Capacity: terms.Resources{1000, 1 << 30, 0}, Rules: 1})
	fold(t, c, 1, c.React(1000).Append)
	if phase, why := c.Phase(); phase != Member {
		t.Fatalf("phase %s %s, want member", phase, why)
	}
	return c
}

func fold(t *testing.T, c *Core, index journal.Index, r *journal.Record) {
	t.Helper()
	if r == nil {
		t.Fatal("nothing to append")
	}
	r.Index = index
	if _, ok := c.Fold(*r, 1000); !ok {
		t.Fatalf("entry %d was passed over", index)
	}
}

func TestOneEntryIsUnderWayUntilItIsFolded(t *testing.T) {
	c := alone(t)
	first := c.React(1000).Append
	if first == nil {
		t.Fatal("the offer is not written")
	}
	answered := false
	c.Request(&command.KillJob{Job: "none"}, func(r report.Receipt, err error) {
		answered = err == nil && r.Refusal.Code == facts.NotFound && r.Index == 3
	})
	if again := c.React(1000).Append; again != nil {
		t.Error("a second entry was made while the first is under way")
	}
	fold(t, c, 2, first)
	fold(t, c, 3, c.React(1000).Append)
	if !answered {
		t.Error("the request was not answered with its refusal at entry 3")
	}
	if more := c.React(1000).Append; more != nil {
		t.Error("something is written although nothing is to do")
	}
}

func TestEntryThatNobodyCanReadIsGivenUp(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	var got error
	c.Request(&command.KillJob{Job: "none"}, func(_ report.Receipt, err error) { got = err })
	r := c.React(1000).Append
	r.Payload[len(r.Payload)-1] ^= 1
	fold(t, c, 3, r)
	if got == nil || !strings.Contains(got.Error(), "checksum") {
		t.Errorf("answer %v, want that the checksum does not match", got)
	}
	c.Request(&command.KillJob{Job: "none"}, func(report.Receipt, error) {})
	if c.React(1000).Append == nil {
		t.Error("nothing is written any more")
	}
}

// TestStartsUnderWayAreBounded: more start when some have, or when those that wait for something do not count.
func TestStartsUnderWayAreBounded(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	many := &terms.Job{Name: "many", Type: terms.Batch,
		Tasks: []terms.Task{{Name: "t", Instances: 1000, Command: []string{"true"}, Placement: terms.Pack}}}
	c.Request(&command.SubmitJob{Spec: *many}, func(r report.Receipt, err error) {
		if err != nil || r.Refusal.Code != facts.OK {
			t.Errorf("the job is refused: %+v, %v", r.Refusal, err)
		}
	})
	fold(t, c, 3, c.React(1000).Append)
	first := c.React(1000)
	if len(first.Start) != StartsMax || first.AskAgain != 1001 {
		t.Fatalf("%d start, and more are asked for at %d; want %d and 1001", len(first.Start), first.AskAgain, StartsMax)
	}
	if again := c.React(1001); len(again.Start) != 0 || again.AskAgain != 0 {
		t.Errorf("%d more start, and more are asked for at %d; want none and never", len(again.Start), again.AskAgain)
	}
	c.StartsMax += 3
	c.DriverStarted(first.Start[0].ID, "")
	c.DriverHas([]reaction.LocalTask{{ID: first.Start[0].ID}})
	if again := c.React(1002); len(again.Start) != 4 {
		t.Errorf("%d more start, want 4", len(again.Start))
	}
}

// TestRefusedOfferIsNotWrittenAgain: a repetition would be refused alike.
func TestRefusedOfferIsNotWrittenAgain(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	odd := &command.Entry{Writer: "a~1", Seq: 9, Time: 1000, Commands: []command.Command{
		&command.Volunteer{Peer: "a~1", Offer: terms.Offer{PortFirst: 9, PortLast: 8}},
	}}
	fold(t, c, 3, &journal.Record{Writer: "a~1", Seq: 9, Payload: command.Encode(odd)})
	if got, want := c.OfferRefusal(), "offer of a~1: "+odd.Commands[0].(*command.Volunteer).Offer.Problem(); got != want {
		t.Errorf("refused for %q, want %q", got, want)
	}
	if again := c.React(1000).Append; again != nil {
		t.Error("the offer was refused and is written again")
	}
	c.Begin("a~2", 0, &terms.Offer{})
	if got := c.OfferRefusal(); got != "" {
		t.Errorf("the next life begins with the refusal %q", got)
	}
}

// TestOfferThatWouldBeRefusedIsNeverWritten also tells the reason from the start.
func TestOfferThatWouldBeRefusedIsNeverWritten(t *testing.T) {
	c, offer := NewCore(terms.DefaultLimits()), &terms.Offer{PortFirst: 9, PortLast: 8}
	c.Begin("a~1", 0, offer)
	fold(t, c, 1, c.React(1000).Append)
	if c.React(1000).Append != nil || c.OfferRefusal() != offer.Problem() {
		t.Errorf("refused for %q, want %q and nothing written", c.OfferRefusal(), offer.Problem())
	}
}

func TestStalledJournalKeepsNobodyWaiting(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	var got []error
	ask := func() {
		c.Request(&command.KillJob{Job: "none"}, func(_ report.Receipt, err error) { got = append(got, err) })
	}
	ask()
	r := c.React(1000).Append
	ask()
	c.Stall(r.Seq-1, errors.New("of an earlier entry"))
	if len(got) > 0 || c.Stalled() != nil {
		t.Errorf("got answers %v because of an entry that was folded", got)
	}
	c.Stall(r.Seq, errors.New("no quorum"))
	ask()
	if len(got) != 3 || c.Stalled() == nil {
		t.Errorf("got answers %v, want three", got)
	}
	for _, err := range got {
		if !errors.Is(err, outbox.ErrStalled) || !strings.Contains(err.Error(), "no quorum") {
			t.Errorf("got answer %v, want that the journal stalls, and why", err)
		}
	}
	fold(t, c, 3, r)
	ask()
	fold(t, c, 4, c.React(1000).Append)
	if len(got) != 4 || got[3] != nil || c.Stalled() != nil {
		t.Errorf("got answers %v, want that the last is taken", got)
	}
}

func TestRequestsOutliveALife(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	answers := 0
	c.Request(&command.KillJob{RequestID: "r", Job: "none"}, func(_ report.Receipt, err error) {
		if err == nil {
			answers++
		}
	})
	underway := c.React(1000).Append
	leave := &command.Entry{Writer: "a~1", Seq: 100, Time: 1, Commands: []command.Command{&command.Leave{Peer: "a~1"}}}
	fold(t, c, 3, &journal.Record{Writer: "a~1", Seq: 100, Payload: command.Encode(leave)})
	if phase, _ := c.Phase(); phase != Left {
		t.Fatalf("phase %s, want left", phase)
	}
	c.Begin("a~2", 0, &terms.Offer{Rules: 1})
	fold(t, c, 4, underway)
	for index := journal.Index(5); index <= 7; index++ { // it joins, offers, and asks
		fold(t, c, index, c.React(1000).Append)
	}
	if answers != 1 {
		t.Errorf("%d answers, want one, under the new life", answers)
	}
}

func TestNothingIsStartedWithoutAPulse(t *testing.T) {
	c := alone(t)
	fold(t, c, 2, c.React(1000).Append)
	c.Request(&command.SubmitJob{Spec: job("count", terms.Batch, 1, "run", "0")}, func(_ report.Receipt, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	fold(t, c, 3, c.React(1000).Append)
	c.Pulseless = true
	if work := c.React(1000); len(work.Start) > 0 {
		t.Errorf("%v is started without a pulse", work.Start)
	}
	c.Pulseless = false
	if work := c.React(1000); len(work.Start) != 1 {
		t.Errorf("started is %v, want one task when the pulse is back", work.Start)
	}
}
