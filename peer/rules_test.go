package peer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster/facts"
	"starling/command"
	"starling/driver"
	"starling/driver/fake"
	"starling/journal"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// raised are entries after which a cluster of a~1 alone has the next rules, and one that needs them.
func raised() []*command.Entry {
	all := []*command.Entry{{Commands: []command.Command{
		&command.PrepareJoin{Joiner: "a~1", Attempt: 1},
		&command.Volunteer{Peer: "a~1", Offer: terms.Offer{Rules: rules.Next}},
	}}}
	for version := rules.First + 1; version <= rules.Released; version++ {
		all = append(all, &command.Entry{Commands: []command.Command{&command.RaiseRules{Version: version}}})
	}
	return append(all,
		// The rules of the next entry count from the next entry on.
		&command.Entry{Rules: rules.First, Commands: []command.Command{
			&command.PassTime{Millis: 5}, &command.RaiseRules{Version: rules.Next}, &command.PassTime{Millis: 5},
			&command.KillJob{Job: "none"},
		}},
		&command.Entry{Commands: []command.Command{&command.PassTime{Millis: 5}}})
}

func recordOf(e *command.Entry, index int) journal.Record {
	e.Writer, e.Seq, e.Time = "a~1", uint64(index), 1000
	return journal.Record{Index: journal.Index(index), Writer: "a~1", Seq: e.Seq, Payload: command.Encode(e)}
}

// folds folds the entries with a program that knows these rules, and returns a line for each that it took.
func folds(knows rules.Number) (c *Core, lines []string) {
	c = NewCore(terms.DefaultLimits())
	c.Knows = knows
	for i, e := range raised() {
		folded, ok := c.Fold(recordOf(e, i+1), 1000)
		if !ok {
			break
		}
		line := fmt.Sprintf("%016x rules %d time %d", folded.Digest, c.State().Rules, c.State().Time)
		for k := range folded.Outcome.Results {
			line += "; " + cmp.Or(folded.Outcome.Results[k].Refusal.Reason, "obeyed")
		}
		lines = append(lines, line)
	}
	return c, lines
}

func TestProgramOfOldRulesStopsWhereTheyAreRaised(t *testing.T) {
	old, oldLines := folds(rules.Released)
	next, nextLines := folds(rules.Next)
	unknown := fmt.Sprintf("a command of kind 65535, version 1, is not known under version %d of the rules: "+
		`if it is one of a newer program, raise them first, see "starling rules"`, rules.Released)
	want := []string{" rules 1 time 1000; obeyed; obeyed"}
	for version := rules.First + 1; version <= rules.Released; version++ {
		want = append(want, fmt.Sprintf(" rules %d time 1000; obeyed", version))
	}
	want = append(want,
		fmt.Sprintf(" rules %d time 1000; %s; obeyed; %s; there is no job none", rules.Next, unknown, unknown),
		fmt.Sprintf(" rules %d time 1006; obeyed", rules.Next))
	for i := range want {
		if i == len(nextLines) || !strings.HasSuffix(nextLines[i], want[i]) {
			t.Fatalf("the new program folds\n%q, want\n%q", nextLines, want)
		}
	}
	last := len(want) - 1
	if next.Halt() != nil || !slices.Equal(oldLines, nextLines[:last]) {
		t.Errorf("the old program folds\n%q, want\n%q", oldLines, nextLines[:last])
	}
	why := fmt.Sprintf("this program does not fit the cluster: that has version %d of the rules after entry %d, "+
		"and this program knows up to version %d: install a newer one and start it; tasks go on meanwhile",
		rules.Next, last, rules.Released)
	if phase, got := old.Phase(); phase != Halted || got != why || !errors.Is(old.Halt(), ErrProgram) {
		t.Errorf("the old program is %s: %s", phase, got)
	}
	if w := old.React(1000); w.Append != nil || len(w.Start)+len(w.Stop)+len(w.Watch) > 0 {
		t.Errorf("the old program does %+v", w)
	}
}

func TestRequestThatNeedsNewerRulesIsRefusedAtOnce(t *testing.T) {
	c := NewCore(terms.DefaultLimits())
	c.Knows = rules.Next
	c.Begin("a~1", 0, &terms.Offer{Rules: rules.Next})
	for index := range journal.Index(rules.Released) { // it joins, and raises the rules one by one
		fold(t, c, index+1, c.React(1000).Append)
	}
	var got []string
	pass := func() {
		c.Request(&command.PassTime{Millis: 1}, func(r report.Receipt, err error) {
			got = append(got, r.Refusal.Reason)
			if err != nil || r.Refusal.Code != facts.OK && r.Refusal.Code != facts.Conflict {
				t.Errorf("answer %+v, %v", r, err)
			}
		})
	}
	pass()
	c.Request(&command.RaiseRules{Version: rules.Next}, func(report.Receipt, error) {})
	raise := c.React(1000).Append
	if len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("needs version %d of the rules", rules.Next)) ||
		!strings.Contains(got[0], "starling rules raise") {
		t.Fatalf("answers %q, want that the rules must be raised", got)
	}
	fold(t, c, journal.Index(rules.Released)+1, raise)
	pass()
	fold(t, c, journal.Index(rules.Released)+2, c.React(1000).Append)
	if len(got) != 2 || got[1] != "" {
		t.Errorf("answers %q, want that the second is obeyed", got)
	}
}

func TestJournalFromBeforeTheFirstReleaseStopsThePeer(t *testing.T) {
	first := journal.Record{Index: 1, Writer: "a~1", Seq: 1, Payload: []byte("\x01\x03a~1\x01\x00\x00\x00")}
	first.Payload = binary.LittleEndian.AppendUint32(first.Payload,
		crc32.Checksum(first.Payload, crc32.MakeTable(crc32.Castagnoli)))
	garbage := journal.Record{Index: 1, Payload: []byte("garbage")}
	c := NewCore(terms.DefaultLimits())
	if _, ok := c.Fold(garbage, 0); !ok {
		t.Error("garbage stops the peer")
	}
	first.Index = 2
	if _, ok := c.Fold(first, 0); ok || !errors.Is(c.Halt(), ErrProgram) ||
		!strings.Contains(c.Halt().Error(), "before the first release") {
		t.Errorf("folded: %v, stopped: %v", ok, c.Halt())
	}
	// Written later it must not end a cluster: it is dropped as garbage is.
	c = alone(t)
	first.Index = 2
	if folded, ok := c.Fold(first, 0); !ok || c.Halt() != nil || !strings.Contains(folded.Outcome.Dropped, "format 1") {
		t.Errorf("folded: %v %+v, stopped: %v", ok, folded.Outcome, c.Halt())
	}
}

func TestPeerThatIsTooOldLeavesItsTasksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 1, "run"))
		f.await("a", "it runs", running("web", 1))
		f.crash("a")
		shared := f.shared.Open()
		raise := &command.Entry{Writer: "a~1", Seq: outbox.Sequence(1 << 24), Time: 1, Commands: []command.Command{
			&command.Volunteer{Peer: "a~1", Offer: terms.Offer{Rules: rules.Next}}, &command.RaiseRules{Version: rules.Next},
		}}
		err := shared.Append(context.Background(),
			journal.Record{Writer: "a~1", Seq: raise.Seq, Payload: command.Encode(raise)})
		if err != nil {
			t.Fatal(err)
		}
		f.start("a")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.peers["a"].Ready(ctx); !errors.Is(err, ErrProgram) {
			t.Errorf("ready: %v, want that the program is too old", err)
		}
		<-f.peers["a"].Done()
		if err := f.peers["a"].Err(); !errors.Is(err, ErrProgram) {
			t.Errorf("stopped: %v, want that the program is too old", err)
		}
		running := 0
		for _, task := range fake.Open(f.machines["a"]).Tasks() {
			if task.State == driver.Running {
				running++
			}
		}
		if running != 1 {
			t.Errorf("%d tasks run, want 1", running)
		}
	})
}

// TestFirstJobComesAfterTheRules has a member that does not raise the rules of a new cluster hold back the first job
// until they are raised, but not for ever.
func TestFirstJobComesAfterTheRules(t *testing.T) {
	c := NewCore(terms.DefaultLimits())
	offer := terms.Offer{Rules: rules.Released}
	index := 0
	fold := func(writer terms.PeerID, seq uint64, commands ...command.Command) {
		index++
		e := &command.Entry{Writer: writer, Seq: seq, Time: 1000, Commands: commands}
		r := journal.Record{Index: journal.Index(index), Writer: string(writer), Seq: seq, Payload: command.Encode(e)}
		c.Fold(r, 1000)
	}
	fold("a~1", 1, &command.PrepareJoin{Joiner: "a~1", Attempt: 1}, &command.Volunteer{Peer: "a~1", Offer: offer})
	fold("b~1", 1, &command.PrepareJoin{Joiner: "b~1", Attempt: 1})
	fold("a~1", 2, &command.NotifyJoin{Joiner: "b~1", Attempt: 1})
	fold("b~1", 2, &command.AcceptJoin{Joiner: "b~1", Observer: "a~1", Attempt: 1},
		&command.Volunteer{Peer: "b~1", Offer: offer})
	c.Begin("b~1", 0, &offer)
	c.Request(&command.SubmitJob{Spec: database()}, func(report.Receipt, error) {})
	submits := func(own terms.Time) bool {
		work := c.React(own)
		if work.Append == nil {
			return false
		}
		e, err := command.Decode(work.Append.Payload, rules.First)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(e.Commands, func(one command.Command) bool { return one.Kind() == command.KindSubmitJob })
	}
	if submits(2000) || submits(2000+rulesWithin-1) {
		t.Error("a job was submitted while the rules are about to be raised")
	}
	if !submits(2000 + rulesWithin) {
		t.Error("nobody raises the rules, and no job is submitted")
	}
}
