package wishes

import (
	"math/rand/v2"

	"starling/terms"
)

// Limits draws the limits of a cluster: about half of them are left as they are, the others are so small that a run
// reaches them.
func Limits(rng *rand.Rand) terms.Limits {
	l := terms.DefaultLimits()
	draw := func(limit *uint32, low, high uint32) {
		if rng.IntN(2) == 0 {
			*limit = low + rng.Uint32N(high-low+1)
		}
	}
	draw(&l.Jobs, 4, 12)
	draw(&l.FinishedJobs, 0, 3)
	draw(&l.FinishedSlots, 2, 20)
	draw(&l.Tasks, 3, 6)
	draw(&l.JobInstances, 4, 20)
	draw(&l.Instances, 10, 60)
	draw(&l.Versions, 2, 4)
	draw(&l.Attempts, 1, 3)
	draw(&l.Requests, 8, 30)
	draw(&l.Lives, 2, 4)
	draw(&l.Pools, 2, 8)
	draw(&l.Placements, 2, 8)
	draw(&l.Preemptions, 1, 4)
	draw(&l.Trials, 1, 4)
	draw(&l.Gang, 2, 6)
	l.Gang = min(l.Gang, l.Placements)
	if rng.IntN(4) == 0 {
		// Machines offer at most nine times 2^40, tasks ask for up to some 2^33.
		l.JobAmount, l.PoolAmount, l.ClusterAmount = 1<<(32+rng.IntN(4)), 1<<(34+rng.IntN(4)), 1<<45
	}
	draw(&l.SnapshotEntries, 2, 60)
	if draw(&l.ChunkBytes, 50, 2000); rng.IntN(4) == 0 {
		l.SnapshotBytes = 200 + rng.Uint64N(8000)
	}
	return l
}
