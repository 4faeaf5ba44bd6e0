package replica

import (
	"slices"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/replica/reaction"
	"starling/terms"
)

// wordsJob runs split on one node, and its count is to start there, too.
func wordsJob() (s *cluster.State, j *workload.Job, split, count terms.AllocationID) {
	s = cluster.NewState()
	s.Index = 7
	here := s.EnsureNode("here")
	s.SetPeer(here.Index, "here~1")
	j = s.AddJob(&terms.Job{Name: "words", Type: terms.Batch, Tasks: []terms.Task{
		{Name: "split", Instances: 1, User: "one"}, {Name: "count", Instances: 1, After: []terms.TaskName{"split"}},
	}})
	set := func(task uint16, phase facts.Phase) terms.AllocationID {
		ref := facts.SlotRef{Job: j.ID, Task: task}
		s.Assign(facts.KeyOf(j.ID, int(task)), here.Index, 1, func(facts.SlotRef) {})
		slot, _ := s.SlotAt(ref)
		slot.Phase = phase
		s.SetSlot(ref, slot)
		return terms.AllocationID{Slot: s.NameOf(ref), Order: slot.Order}
	}
	split = set(0, facts.Succeeded)
	return s, j, split, set(1, facts.Assigned)
}

func TestHandover(t *testing.T) {
	s, j, split, count := wordsJob()
	h, ok := reaction.HandoverOf(s, count)
	want := reaction.Input{Output: terms.OutputSet{Allocation: split, Job: j.ID}, User: "one", Node: "here"}
	if !ok || h.Problem != "" || h.Output.Allocation != count || !slices.Equal(h.Inputs, []reaction.Input{want}) {
		t.Errorf("got %+v, %t, want %+v", h, ok, want)
	}
	if _, ok := reaction.HandoverOf(s, split); ok {
		t.Error("what has succeeded is handed something")
	}
	count.Order++
	if _, ok := reaction.HandoverOf(s, count); ok || reaction.IsDue(s, count) {
		t.Error("an allocation that is not wanted is handed something")
	}
}

// TestACanaryIsDue looks for an allocation beside the one that fills the slot.
func TestACanaryIsDue(t *testing.T) {
	s, j, _, count := wordsJob()
	seat := facts.SlotRef{Job: j.ID, Task: 1, Seat: facts.CanarySeat}
	main, _ := s.SlotAt(facts.SlotRef{Job: j.ID, Task: 1})
	main.Order = 9
	s.SetSlot(seat, main)
	count.Order = main.Order
	if !reaction.IsDue(s, count) {
		t.Error("a canary that has its node is not due")
	}
}

// TestOutputsAreKeptForWhoComesAfter looks at the same outputs as the job goes on.
func TestOutputsAreKeptForWhoComesAfter(t *testing.T) {
	s, j, split, count := wordsJob()
	old := split
	old.Order--
	sets := func(ids ...terms.AllocationID) (all []terms.OutputSet) {
		for _, id := range ids {
			all = append(all, terms.OutputSet{Allocation: id, Job: j.ID})
		}
		return all
	}
	observed := &reaction.Observed{Outputs: append(sets(old, split, count),
		terms.OutputSet{Allocation: split, Job: j.ID + 1})}
	wantDeleted := func(what string, want []terms.OutputSet) {
		t.Helper()
		if got := reaction.React("here~1", s, observed).DeleteOutputs; !slices.Equal(got, want) {
			t.Errorf("%s: got %v deleted, want %v", what, got, want)
		}
	}
	stray := observed.Outputs[3]
	wantDeleted("count is to start", append(sets(old), stray))
	observed.Local = []reaction.LocalTask{{ID: count}}
	wantDeleted("count runs", nil)
	observed.Local[0].Ended = facts.ByItself
	wantDeleted("count has ended", append(sets(old), stray))
	ref := facts.SlotRef{Job: j.ID, Task: 1}
	slot, _ := s.SlotAt(ref)
	slot.Phase = facts.Succeeded
	s.SetSlot(ref, slot)
	s.FinishIfDone(j.ID)
	wantDeleted("the job has succeeded", append(sets(old, split), stray))
	slot.Phase = facts.Stopped
	s.SetSlot(ref, slot)
	wantDeleted("it was stopped before", append(sets(old, split, count), stray))
	s.Expire(j.ID)
	s.ForgetJobs()
	wantDeleted("the job is forgotten", observed.Outputs)
	if got := reaction.React("here~2", s, observed).DeleteOutputs; got != nil {
		t.Errorf("got %v deleted by a peer that is no member, want none", got)
	}
}
