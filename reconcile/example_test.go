package reconcile_test

import (
	"fmt"

	"starling/reconcile"
	"starling/terms"
)

// A caller that keeps the tally lists only the slots that changed, however many there are.
func ExampleReconcile() {
	task := &reconcile.Task{
		Now: 1_000, Version: 1, Count: 50_000, Spec: &terms.Task{}, Policy: &terms.UpdatePolicy{},
	}
	slot := reconcile.Slot{Index: 17, Candidates: []reconcile.Candidate{
		{Order: 1, Version: 1, Client: reconcile.RunningClient},
	}}
	var out reconcile.Result
	weight := reconcile.Decide(task, &slot, &out).Weight
	var rest reconcile.Tally
	for range task.Count - 1 {
		rest.Add(weight)
	}

	// The node of slot 17 dies: that slot alone is listed.
	slot.Candidates[0].Node = reconcile.NodeGone
	reconcile.Reconcile(task, []reconcile.Slot{slot}, rest, &out)
	for _, p := range out.Placements {
		fmt.Printf("%d: %v\n", p.Index, p.Reason)
	}
	for _, s := range out.Stops {
		fmt.Printf("%d#%d: %v\n", s.Index, s.Order, s.Reason)
	}
	fmt.Println(out.Counts.Ignore, "run as asked")
	// Output:
	// 17: placed: the last instance was lost
	// 17#1: its node is lost
	// 49999 run as asked
}
