// Package bound says how much work the fold of an entry may be, by how large the value is.
package bound

import (
	"starling/cluster"
	"starling/cluster/workload"
)

// Size is how large a value is, as far as the work of one entry depends on that.
type Size struct {
	// Rows counts nodes, pools, jobs, tasks, slots and sets of volumes.
	Rows, Nodes, Slots uint64
	// Waiting are the entries of the queue, Tasks is the most tasks that a job has.
	Waiting, Tasks uint64
	// Placements and Preemptions are limits of the value.
	Placements, Preemptions uint64
}

// SizeOf returns the size of a value.
func SizeOf(s *cluster.State) Size {
	z := Size{Nodes: uint64(s.Nodes()), Waiting: uint64(s.Waiting()), Placements: uint64(s.Limits.Placements),
		Preemptions: uint64(s.Limits.Preemptions)}
	z.Rows = z.Nodes + uint64(len(s.Pools())) + uint64(s.Volumes().Len())
	s.EachJob(func(j *workload.Job) bool {
		z.Tasks = max(z.Tasks, uint64(len(j.Tasks)))
		z.Rows += 1 + uint64(len(j.Tasks))
		for _, t := range j.Tasks {
			z.Slots += uint64(t.Slots.Len())
		}
		return true
	})
	z.Rows += z.Slots
	return z
}

// RowsMax is the most rows that the fold of an entry may visit, Outcome.Visited, on a value that has the one size
// before it and the other after it:
//
//   - a few times all rows for each command, and once more for what is due, what is shared and what is kept;
//   - for each queue entry, before or after or for the sake of a command, all nodes, and itself again for what is
//     placed meanwhile;
//   - for each instance that may give way to its successor, all nodes;
//   - all rows for each look at what could be preempted, of which an entry has few.
func RowsMax(before, after Size, commands int) uint64 {
	rows, nodes, times := before.Rows+after.Rows, max(before.Nodes, after.Nodes), uint64(1+commands)
	queued := before.Waiting + after.Waiting + times*max(before.Tasks, after.Tasks)
	placed := min(after.Placements, after.Slots)
	return 4*rows*times + max(before.Slots, after.Slots)*(nodes+8) + 2*queued*(nodes+placed) +
		2*rows*min(after.Preemptions, before.Waiting+after.Waiting)
}
