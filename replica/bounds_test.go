package replica

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// small returns a job of one task that needs nothing.
func small(name string, instances uint32) *command.SubmitJob {
	return benchJob(name, instances, terms.Pack, 0)
}

// TestPlacementGoesOn places more than one entry may: the rest goes with the next, for which somebody tells the time.
func TestPlacementGoesOn(t *testing.T) {
	s := clusterOf(2)
	s.SetWatched("m00000~1", "m00001~1")
	s.SetWatched("m00001~1", "m00000~1")
	most := int(terms.DefaultLimits().Placements)
	instances := most + 5000
	job := small("many", uint32(instances))
	job.Spec.Tasks[0].Resources = terms.Resources{}
	apply(s, 2, job)
	if held(s) != most || !s.Unfinished {
		t.Fatalf("the first entry placed %d, unfinished is %v; want %d, true", held(s), s.Unfinished, most)
	}
	told := 0
	for i := range 2 {
		p := terms.NewPeerID(terms.NodeName(fmt.Sprintf("m%05d", i)), 1)
		for _, one := range reaction.React(p, s, &reaction.Observed{Now: s.Time}).Commands {
			if one.Kind() == command.KindTellTime {
				told++
			}
		}
	}
	if told != 1 {
		t.Errorf("%d peers tell the time at once, want 1", told)
	}
	apply(s, 3, &command.TellTime{})
	if held(s) != instances || s.Unfinished {
		t.Errorf("the next entry left %d placed, unfinished is %v; want %d, false", held(s), s.Unfinished, instances)
	}
	if found := s.Audit(); len(found) > 0 {
		t.Errorf("the books: %q", found)
	}
}

func TestEffectsAreBounded(t *testing.T) {
	s := clusterOf(1)
	job := small("many", report.EffectsMax+10)
	job.Spec.Tasks[0].Resources = terms.Resources{}
	outcome := Apply(s, 1, &command.Entry{Writer: "m00000~1", Seq: 2, Commands: []command.Command{job}}, true)
	if n := len(outcome.Effects); n != report.EffectsMax+1 || outcome.Effects[n-1].Kind != report.More {
		t.Errorf("%d effects are kept, the last is %s; want %d and more", n, outcome.Effects[n-1].Kind, report.EffectsMax+1)
	}
}

// TestReportsAreBounded has a node tell more than fits into one entry: the rest goes with the next.
func TestReportsAreBounded(t *testing.T) {
	s := clusterOf(1)
	job := small("many", reaction.ReportsMax+10)
	job.Spec.Tasks[0].Resources = terms.Resources{}
	apply(s, 2, job)
	o := &reaction.Observed{Starts: reaction.ReportsMax + 10}
	for _, order := range reaction.React("m00000~1", s, o).Start {
		o.Local = append(o.Local, reaction.LocalTask{ID: order.ID, Ended: facts.NotStarted,
			Detail: strings.Repeat("é", facts.FailureDetailBytesMax)})
	}
	e := &command.Entry{Writer: "m00000~1", Seq: 3, Commands: reaction.React("m00000~1", s, o).Commands}
	if got := len(e.Commands[0].(*command.ReportTasks).Reports); got != reaction.ReportsMax {
		t.Errorf("one entry tells %d ends, want %d", got, reaction.ReportsMax)
	}
	if _, err := command.Decode(command.Encode(e), rules.First); err != nil {
		t.Errorf("nobody can read the news: %v", err)
	}
	Apply(s, s.Index+1, e, false)
	if got := len(reaction.React("m00000~1", s, o).Commands[0].(*command.ReportTasks).Reports); got != 10 {
		t.Errorf("%d ends are left to tell, want 10", got)
	}
}

// TestStartsAreInTurn: of many that are to start so many do as may, those first that were placed first; and one whose
// turn has not come has ended as soon as it is told to.
func TestStartsAreInTurn(t *testing.T) {
	s := clusterOf(1)
	placed := func(seq uint64, name string, instances uint32) {
		job := small(name, instances)
		job.Spec.Tasks[0].Resources = terms.Resources{}
		Apply(s, s.Index+1, &command.Entry{Writer: "m00000~1", Seq: seq, Time: terms.Time(seq),
			Commands: []command.Command{job}}, false)
	}
	placed(2, "b", 5)
	placed(3, "a", 2)
	placed(4, "b2", 2)
	o := &reaction.Observed{Starts: 6}
	got := reaction.React("m00000~1", s, o)
	names := make([]string, len(got.Start))
	for i, order := range got.Start {
		names[i] = order.ID.Slot.String()
	}
	want := []string{"b.main[0]", "b.main[1]", "b.main[2]", "b.main[3]", "b.main[4]", "a.main[0]"}
	if !slices.Equal(names, want) || got.Queued != 3 {
		t.Errorf("these start: %q, and %d come later; want %q and 3", names, got.Queued, want)
	}
	o.Starts = 0
	apply(s, 5, &command.KillJob{Job: "b2"})
	got = reaction.React("m00000~1", s, o)
	if len(got.Start) != 0 || got.Queued != 6+1 || len(got.Commands) != 1 ||
		len(got.Commands[0].(*command.ReportTasks).Reports) != 2 {
		t.Errorf("%d start, %d come later and %+v is told, want none, 7, and the ends of 2", len(got.Start), got.Queued,
			got.Commands)
	}
}

// TestReactKeepsBadOffersBack checks that an offer that will be refused is not written again and again.
func TestReactKeepsBadOffersBack(t *testing.T) {
	s := clusterOf(1)
	offer := &terms.Offer{Attributes: []terms.EnvVar{{Name: "zone", Value: "\xff"}}}
	if commands := reaction.React("m00000~1", s, &reaction.Observed{Offer: offer}).Commands; len(commands) > 0 {
		t.Errorf("an offer that is not UTF-8 is written: %v", commands)
	}
}

func TestApplyWantsTheNextEntry(t *testing.T) {
	for _, index := range []terms.Index{0, 2} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("entry %d was folded into an empty value", index)
				}
			}()
			Apply(cluster.NewState(), index, &command.Entry{Writer: "a~1", Seq: 1}, false)
		}()
	}
}

// TestSkip passes over bytes that no entry has: only the index moves.
func TestSkip(t *testing.T) {
	s := clusterOf(1)
	before := s.Copy()
	if outcome := Skip(s, 1, 9, "no entry"); outcome.Index != 1 || outcome.Dropped != "no entry" || s.Index != 1 {
		t.Errorf("Skip() = %+v at index %d", outcome, s.Index)
	}
	if s.Index = 0; s.Digest() != before.Digest() {
		t.Error("Skip changed more than the index")
	}
}

// TestCopiesBesideEachOther folds copies of one value in several goroutines; under the race detector this shows whether
// they share what they change.
func TestCopiesBesideEachOther(t *testing.T) {
	h := newHistory(3)
	for range 60 {
		Apply(h.s, h.s.Index+1, h.next(), false)
	}
	copies := []*cluster.State{h.s, h.s.Copy(), h.s.Copy(), h.s.Copy()}
	from := h.s.Copy()
	h.s = from
	var rest []*command.Entry
	for range 60 {
		e := h.next()
		rest = append(rest, e)
		Apply(from, from.Index+1, e, false)
	}
	var group sync.WaitGroup
	for _, s := range copies {
		group.Go(func() {
			for _, e := range rest {
				Apply(s, s.Index+1, e, false)
				reaction.React(e.Writer, s, &reaction.Observed{Now: s.Time, Starts: 9})
			}
		})
	}
	group.Wait()
	for i, s := range copies {
		if s.Digest() != from.Digest() {
			t.Errorf("copy %d ends with another value", i)
		}
	}
}
