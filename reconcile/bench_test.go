package reconcile_test

import (
	"fmt"
	"testing"

	"starling/reconcile"
	"starling/terms"
)

// steady returns a task of n slots that all run as asked, and what they weigh together.
func steady(n uint32) (*reconcile.Task, []reconcile.Slot, reconcile.Tally) {
	task := &reconcile.Task{
		Now: now, Version: 1, Count: n, Spec: &terms.Task{}, Policy: &terms.UpdatePolicy{BatchSize: 10},
	}
	slots := make([]reconcile.Slot, n)
	for i := range slots {
		c := reconcile.Candidate{Order: 1, Version: 1, Client: reconcile.RunningClient}
		slots[i] = reconcile.Slot{Index: uint32(i), Candidates: []reconcile.Candidate{c}}
	}
	var all reconcile.Tally
	var out reconcile.Result
	reconcile.Reconcile(task, slots, reconcile.Tally{}, &out)
	for i := range out.Decisions {
		all.Add(out.Decisions[i].Weight)
	}
	return task, slots, all
}

// BenchmarkReconcile shows that slots that rest cost nothing: the first two cases of each size cost the same.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []uint32{10, 1_000, 100_000} {
		task, slots, all := steady(n)
		b.Run(fmt.Sprintf("%d/nothing changed", n), func(b *testing.B) { reconcileOften(b, task, nil, all) })

		one := slots[n/2 : n/2+1]
		failed := []reconcile.Slot{{Index: one[0].Index, Candidates: []reconcile.Candidate{one[0].Candidates[0]}}}
		failed[0].Candidates[0].Node = reconcile.NodeGone
		b.Run(fmt.Sprintf("%d/one changed", n), func(b *testing.B) { reconcileOften(b, task, failed, all) })

		b.Run(fmt.Sprintf("%d/all listed", n), func(b *testing.B) { reconcileOften(b, task, slots, reconcile.Tally{}) })

		newer := *task
		newer.Version = 2
		for i := range slots {
			slots[i].Candidates[0].Outdated = true
		}
		b.Run(fmt.Sprintf("%d/all changed", n), func(b *testing.B) { reconcileOften(b, &newer, slots, reconcile.Tally{}) })
	}
}

func reconcileOften(b *testing.B, task *reconcile.Task, slots []reconcile.Slot, rest reconcile.Tally) {
	var out reconcile.Result
	b.ReportAllocs()
	for b.Loop() {
		reconcile.Reconcile(task, slots, rest, &out)
	}
}

// TestSteadyAllocations checks that a result that is used again costs no memory.
func TestSteadyAllocations(t *testing.T) {
	task, slots, _ := steady(100)
	slots[3].Candidates[0].Node = reconcile.NodeGone
	var out reconcile.Result
	if n := testing.AllocsPerRun(10, func() { reconcile.Reconcile(task, slots, reconcile.Tally{}, &out) }); n > 0 {
		t.Errorf("%.0f allocations for 100 slots, want none", n)
	}
}
