package facts

import (
	"starling/cluster/membership"
	"starling/cluster/registry"
	"starling/cluster/retries"
	"starling/cluster/tree"
	"starling/terms"
	"starling/terms/rules"
)

// All is of a value that does not follow from the rest of it. Equal facts behave alike from then on.
type All struct {
	Head
	Pools *tree.Pools
	// Registry is who is known, nil for nobody.
	Registry *registry.Registry
	// Nodes are at their NodeIndex, Jobs in the order of their submission.
	Nodes []Node
	Jobs  []WholeJob
	// Ring is who watches whom and who joins. Who is a member, its node says.
	Ring *membership.Facts
	// Requests are in the order in which they were remembered.
	Requests []Row[string, Request]
	// SoftSince is since when tasks with soft constraints wait, Nominations what is kept for waiting jobs, Starving are
	// the pools whose work waits for room that others have, Shared tells from what the virtual peers of each pool were
	// divided last.
	SoftSince   []Row[TaskKey, terms.Time]
	Nominations []Row[terms.JobID, Nomination]
	Starving    []Row[tree.ID, Starving]
	Shared      []Row[tree.ID, uint64]
	// Volumes are what slots do not say of sets of volumes.
	Volumes []Row[terms.VolumeSet, Volumes]
}

// Head are the facts that are one of a kind.
type Head struct {
	// Index is the last entry folded, Time the highest time told by an entry.
	Index terms.Index
	Time  terms.Time
	// Rules is the version of the fold that all peers follow.
	Rules rules.Number
	// Limits bound what the value keeps and what an entry does. They do not change.
	Limits terms.Limits
	// LastJob is the highest JobID given.
	LastJob terms.JobID
	// RequestNext counts the requests that were remembered.
	RequestNext uint64
	Undone
	Snapshots Snapshots
}

// Undone is what an entry leaves to do for the next.
type Undone struct {
	// Unfinished tells that work was left over for the next entry.
	Unfinished bool
	// PlacementDirty tells that more or less is held, asked for or offered since placement last looked, PreemptionDirty
	// the same of held, asked for or given since it was looked for what gives way.
	PlacementDirty, PreemptionDirty bool
	// DirtyNodes are the nodes that got more room since placement last looked.
	DirtyNodes []NodeIndex
	// Holds counts how often room was taken.
	Holds uint64
}

// WholeJob are the facts about a job with its tasks.
type WholeJob struct {
	Job
	Tasks []WholeTask
}

// WholeTask are the facts about a task with its slots. Those from Fresh on are zero, and not listed.
type WholeTask struct {
	Task
	// Length is how many slots there are.
	Length int
	Slots  []Slot
	// Secondary are the seats that are not main ones, Attempts the looks of slots for another node after failures.
	Secondary []Row[SeatKey, Slot]
	Attempts  []Row[uint32, retries.Attempts]
}

// Row is a row of a table, with its key.
type Row[K, V any] struct {
	Key   K
	Value V
}

// Table is a map that is scanned in the order of its keys.
type Table[K, V any] interface {
	// Scan visits the rows in the order of their keys until visit returns false.
	Scan(visit func(K, V) bool)
}

// RowsOf returns all that a table holds.
func RowsOf[K, V any](t Table[K, V]) (all []Row[K, V]) {
	t.Scan(func(key K, value V) bool {
		all = append(all, Row[K, V]{Key: key, Value: value})
		return true
	})
	return all
}
