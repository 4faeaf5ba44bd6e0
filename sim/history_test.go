package sim

import (
	"maps"
	"slices"
	"testing"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/command"
	"starling/journal"
	"starling/peer"
	"starling/terms"
)

// TestRandomHistories compares the fold with the model on histories that no cluster of correct peers would write: any
// writer may write anything, often what nearly fits.
func TestRandomHistories(t *testing.T) {
	last := uint64(3000)
	if testing.Short() {
		last = 300
	}
	for seed := uint64(1); seed <= last; seed++ {
		if err := playHistory(seed); err != nil {
			t.Errorf("history %d: %v", seed, err)
		}
	}
}

// scribe writes one history, and one reader folds it.
type scribe struct {
	*World
	reader  *machine
	numbers map[terms.PeerID]uint64
}

func newScribe(seed uint64, o Options) *scribe {
	w := newWorld(seed, o)
	return &scribe{w, &machine{w: w, name: "reader", label: "reader", core: peer.NewCore(w.limits)},
		map[terms.PeerID]uint64{}}
}

func (s *scribe) fold(e *command.Entry) {
	s.reader.core.Explain = true // for the model
	r := journal.Record{Index: journal.Index(len(s.records) + 1), Writer: string(e.Writer), Seq: e.Seq,
		Payload: command.Encode(e)}
	folded, _ := s.reader.core.Fold(r, s.now)
	s.records = append(s.records, r)
	s.checkEntry(s.reader, &folded)
}

func playHistory(seed uint64) error {
	s, err := writeHistory(seed)
	if err != nil {
		return err
	}
	s.audit(s.reader)
	s.foldAgain(s.reader.core.State())
	return s.failure
}

// writeHistory draws and folds one history.
func writeHistory(seed uint64) (*scribe, error) {
	s := newScribe(seed, Options{})
	s.clients.Names = []terms.JobName{"job0", "job1", "a/x/job2", "b/job3"}
	s.rates[staleWrite], s.rates[badVersion], s.rates[drainMachine] = 200, 300, 500
	for range 150 {
		s.posted++ // so that requests have names of their own
		s.now += terms.Time(s.between(-200, 1500))
		s.fold(s.entry())
		if s.failure != nil {
			return nil, s.failure
		}
	}
	return s, nil
}

// entry draws the next entry: mostly of somebody who may write, sometimes of one who has left, never was, or repeats.
func (s *scribe) entry() *command.Entry {
	writer := terms.NewPeerID(terms.NodeName("abcde"[s.rng.IntN(5):][:1]), uint32(s.between(1, 2)+len(s.records)/50))
	if len(s.model.Ring) > 0 && s.rng.IntN(2) == 0 {
		writer = s.model.Ring[s.rng.IntN(len(s.model.Ring))]
	}
	if s.rng.IntN(20) > 0 {
		s.numbers[writer] += uint64(s.between(1, 2))
	}
	e := &command.Entry{Writer: writer, Seq: s.numbers[writer], Time: s.now}
	for range s.between(1, 4) {
		e.Commands = append(e.Commands, s.command(writer))
	}
	return e
}

// command draws what the writer should write, or nonsense.
func (s *scribe) command(writer terms.PeerID) command.Command {
	if s.rng.IntN(3) == 0 {
		return s.nonsense(writer)
	}
	for _, joiner := range slices.Sorted(maps.Keys(s.model.Attempts)) {
		if a := s.model.Attempts[joiner]; a.Observer == writer && a.Phase == membership.Prepared && s.rng.IntN(3) > 0 {
			return &command.NotifyJoin{Joiner: joiner, Attempt: a.Number}
		}
	}
	for _, p := range s.model.Ring {
		if p == writer {
			return s.work(writer)
		}
	}
	switch a := s.model.Attempts[writer]; a.Phase {
	case membership.Accepted:
		return &command.AcceptJoin{Joiner: writer, Observer: a.Observer, Attempt: a.Number}
	case membership.Refused, membership.Orphaned:
		return &command.AbortJoin{Joiner: writer, Attempt: a.Number}
	default:
		return &command.PrepareJoin{Joiner: writer, Attempt: a.Number + 1}
	}
}

// work draws what a member writes.
func (s *scribe) work(writer terms.PeerID) command.Command {
	request := ""
	if s.rng.IntN(3) > 0 {
		request = "request" + string(rune('a'+s.rng.IntN(26)))
	}
	name := s.clients.Names[s.rng.IntN(len(s.clients.Names))]
	switch s.rng.IntN(13) {
	case 0:
		return &command.Leave{Peer: s.anybody()}
	case 1, 2:
		return &command.Volunteer{Peer: writer, Offer: s.drawOffer(&machine{w: s.World, name: writer.Node()})}
	case 3:
		spec, version := s.clients.Spec(name), uint32(0)
		if j := s.reader.core.State().JobOf(name); j != nil {
			spec = s.clients.Changed(j.Spec)
			if j.Finished == 0 {
				version = j.Version
			}
		}
		return &command.SubmitJob{RequestID: request, Spec: spec, Against: version}
	case 4, 5:
		if c := s.clients.Wish(s.reader.core.State(), name); c != nil {
			return c
		}
		return &command.TellTime{}
	case 6:
		return &command.TellTime{}
	case 7:
		return s.clients.ChangePools(s.reader.core.State())
	}
	return s.news(writer)
}

// news reports slots, mostly of the writer's own node and of their present allocations.
func (s *scribe) news(writer terms.PeerID) command.Command {
	c := &command.ReportTasks{Peer: writer}
	for _, seat := range s.model.Seats() {
		mine := s.model.Nodes[seat.Node].Peer == writer
		if !mine && s.rng.IntN(10) > 0 || s.rng.IntN(2) == 0 {
			continue
		}
		r := command.Report{Slot: seat.Ref, Order: seat.Order, Ready: s.rng.IntN(3) > 0}
		if s.rng.IntN(6) == 0 {
			r.Order--
		}
		if s.rng.IntN(2) == 0 {
			r.Ended, r.ExitCode = facts.Ending(s.between(1, int(facts.EndingCount)-1)), int32(s.between(0, 1))
		}
		c.Reports = append(c.Reports, r)
	}
	return c
}
