package share

import (
	"cmp"

	"starling/cluster"
)

// Rank orders what waits in a pool: a gang that runs and lost members, then the highest priority, then the oldest job.
// Within a job its gang comes before the single instances, which are not asked before it runs, and those in the order of
// tasks.
type Rank struct {
	// Broken tells that the others of the gang run and wait for these.
	Broken   bool
	Priority uint32
	// Job is lower the older the job is.
	Job    cluster.JobID
	Single bool
	Task   int
}

// Compare is below 0 if r goes before other.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(first(r.Broken, other.Broken), cmp.Compare(other.Priority, r.Priority), cmp.Compare(r.Job, other.Job),
		first(other.Single, r.Single), cmp.Compare(r.Task, other.Task))
}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
