package replica

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/schedule/place"
	"starling/terms"
)

// succession is a trial in which instances of the newest version take the places of what is to stop, one after the
// other.
type succession struct {
	f *fold
	// trial is the value with those that were tried so far.
	trial *cluster.State
	// lacks counts those that found no room.
	lacks uint32
}

// exhausted tells that room was looked for in vain often enough.
func (t *succession) exhausted() bool { return t.lacks >= t.f.s.Limits.Trials }

// succeeds tells whether an instance that runs has a successor for which there is room. What does not run has nothing
// to lose, a task that the newest version lacks has no successors, and a daemon is to leave a node that its newest
// version may not run on. Other nodes than its own come into question only when no instance of the task is on its way
// to one: that might take the room.
func (t *succession) succeeds(r facts.SlotRef) bool {
	j := t.trial.Job(r.Job)
	slot, _ := t.trial.SlotAt(r)
	runs := slot.Phase == facts.Assigned || slot.Phase == facts.Running
	if !runs || j.TaskSpecOf(int(r.Task), j.Version) == nil ||
		j.Spec.Type == terms.Daemon && !t.f.able(j, int(r.Task), slot.Node) {
		return true
	}
	if t.exhausted() {
		return false
	}
	task := j.Tasks[r.Task]
	next, found := place.Succeed(t.trial, r, task.Waits()+uint32(task.SpecialWaits())+task.Counts[facts.Stopping] == 0)
	t.f.s.Visit(1 + int(next.Visited()-t.trial.Visited()))
	if !found {
		t.lacks++
		return false
	}
	t.trial = next
	return true
}

// suits tells whether a node satisfies the rules of the newest version of a task, so that an instance of it may stay
// there.
func (f *fold) suits(key facts.TaskKey, n facts.NodeIndex) bool {
	f.s.Visit(1)
	return place.Suits(f.s, key, n)
}
