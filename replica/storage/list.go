package storage

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
)

// State is what becomes of a set of volumes.
type State string

// The states of volumes.
const (
	// InUse: an allocation of their slot has them.
	InUse State = "in use"
	// Waiting: their slot is to run again where they are.
	Waiting State = "waiting"
	// Kept: no instance is to have them now.
	Kept State = "kept"
)

// Volumes is a set of volumes of which something may be on a node.
type Volumes struct {
	Set terms.VolumeSet
	// Node has them.
	Node  terms.NodeName
	State State
	// Order is that of the last allocation that had them.
	Order terms.Index
	// Since is when they came to be kept, 0 while their slot is there.
	Since terms.Time
	// Until is when they go by themselves, 0 if nobody has said.
	Until terms.Time
}

// List returns all volumes, in the order of their sets.
func List(s *cluster.State) (all []Volumes) {
	for _, one := range s.Volumes().Rows() {
		if left := one.Value; left.User == 0 || !left.Empty && !isThere(s, one.Key.Slot) {
			all = append(all, Volumes{one.Key, s.Node(left.Node).Name, Kept, left.Order, left.Since, left.Until})
		}
	}
	s.EachJob(func(j *workload.Job) bool {
		for task := range j.Tasks {
			if j.HasVolumes(task) {
				all = append(all, ofTask(s, j, task)...)
			}
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b Volumes) int { return a.Set.Compare(b.Set) })
	return all
}

// Lost refuses to let another machine have the name of a node while volumes are looked for there: it would begin with
// empty ones in their place.
func Lost(s *cluster.State, name terms.NodeName, key access.Key) report.Result {
	if s.NodeOf(name) == nil || s.Registry().Find(access.Subject{Kind: access.OfNode, Name: string(name)}, key) != nil {
		return report.Result{}
	}
	all := slices.DeleteFunc(List(s), func(v Volumes) bool { return v.Node != name })
	if len(all) == 0 {
		return report.Result{}
	}
	return report.Refuse(facts.Conflict, "node %s had the volumes of %s, %d in all: if they are lost, give them up by "+
		"starling alloc stop --give-up-volumes or starling volume rm, see starling volume ls; or give the new machine another "+
		"name", name, all[0].Set.Slot, len(all))
}

// isThere tells whether a job has the slot now.
func isThere(s *cluster.State, slot terms.SlotName) bool {
	_, ok := s.RefOf(slot)
	return ok
}

// ofTask returns those of the slots of a task that have been placed since they began with what they have.
func ofTask(s *cluster.State, j *workload.Job, task int) (all []Volumes) {
	s.EachSlot(j.ID, task, func(r facts.SlotRef, _ facts.Slot) bool {
		if one, ok := ofSlot(s, j, r); ok && r.Seat == facts.MainSeat {
			all = append(all, one)
		}
		return true
	})
	return all
}

// ofSlot returns those of a slot of a task that has volumes; ok is false if no instance has been placed with them.
func ofSlot(s *cluster.State, j *workload.Job, r facts.SlotRef) (one Volumes, ok bool) {
	row, _ := s.SlotAt(r)
	set, began, _ := s.Volumes().Of(s.NameOf(r), j.ID)
	if row.Order == 0 || began.Empty && row.Order < began.Order {
		return one, false
	}
	one = Volumes{Set: set, Node: s.Node(row.Node).Name, State: Kept, Order: row.Order, Until: began.Until}
	switch {
	case row.Phase.Holds():
		one.State = InUse
	case isWanted(j, r):
		one.State = Waiting
	}
	return one, true
}

// isWanted tells whether a job is to have the slot.
func isWanted(j *workload.Job, r facts.SlotRef) bool {
	return j.Finished == 0 && !j.Stop && r.Index < j.Tasks[r.Task].Desired
}
