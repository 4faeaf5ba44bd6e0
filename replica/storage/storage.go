// Package storage applies what is asked for about volumes.
package storage

import (
	"errors"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

// ErrInUse tells that something may write to volumes now.
var ErrInUse = errors.New("an instance has these volumes")

// Remove forgets volumes, so that the node that has them deletes them. Those of an instance that runs, or that its job
// is to have, it refuses.
func Remove(s *cluster.State, set terms.VolumeSet) report.Result {
	slot, none := set.Slot, report.Refuse(facts.NotFound, "there are no volumes %s", set)
	if kept, ok := s.Volumes().Get(set); ok && kept.User == 0 {
		s.Volumes().Delete(set)
		return report.Result{Job: slot.Job}
	}
	j := s.JobOf(slot.Job)
	if j == nil || s.Expired(j.ID) {
		return none
	}
	r, _ := s.RefOf(slot)
	row, there := s.SlotAt(r)
	now, kept, found := s.Volumes().Of(slot, j.ID)
	switch {
	case now != set, kept.Empty && row.Order < kept.Order:
		return none
	case !found && (row.Order == 0 || !j.HasVolumes(int(r.Task))):
		return none
	case there && (row.Phase.Holds() || isWanted(j, r)):
		return report.Refuse(facts.Conflict,
			"%s is one of the instances that job %s is to have: stop the job first, or begin with empty volumes by "+
				"starling alloc stop --give-up-volumes", slot, slot.Job)
	}
	Renew(s, slot, j.ID)
	return report.Result{Job: slot.Job}
}

// Expire forgets one set of volumes whose time is over, so that the node that has them deletes them; what an instance
// is to have is kept. It returns false if there is none.
func Expire(s *cluster.State) bool {
	set, at, ok := s.Volumes().Due()
	if !ok || at > s.Time {
		return false
	}
	if kept, _ := s.Volumes().Get(set); isAsked(s.Job(kept.User), set.Slot) || Remove(s, set).Refused() {
		kept.Until = 0
		s.Volumes().Put(set, kept)
	}
	return true
}

// isAsked tells whether the newest version of a job has the instance, though an update that is held may not add it yet.
func isAsked(j *workload.Job, slot terms.SlotName) bool {
	return j != nil && j.Finished == 0 && !j.Stop && slices.ContainsFunc(j.Spec.Tasks, func(t terms.Task) bool {
		return t.Name == slot.Task && t.Instances > slot.Index
	})
}

// Move notes that volumes are on the writer's node, to which its peer has copied what an allocation left in them. It is
// refused while an instance has them, and if there was another allocation since.
func Move(s *cluster.State, writer terms.PeerID, c *command.MoveVolumes) report.Result {
	if !s.IsMember(writer) {
		return report.Refuse(facts.Denied, "%s is not a member", writer)
	}
	set := c.Volumes
	one, r, refusal := unused(s, set)
	switch {
	case refusal.Refused():
		return refusal
	case one.Order != c.Order:
		return report.Refuse(facts.Conflict, "an instance has used the volumes %s since they were copied: try again", set)
	case one.Node == writer.Node():
		return report.Refuse(facts.Conflict, "node %s has the volumes %s", one.Node, set)
	}
	to := s.NodeOf(writer.Node()).Index
	if kept, ok := s.Volumes().Get(set); ok && !kept.Empty {
		kept.Node = to
		s.Volumes().Put(set, kept)
	}
	if slot, ok := s.SlotAt(r); ok {
		slot.Node = to
		s.SetSlot(r, slot)
	}
	return report.Result{Job: set.Slot.Job}
}

// Find returns volumes; ok is false if there are none of the set.
func Find(s *cluster.State, set terms.VolumeSet) (one Volumes, ok bool) {
	one, _ = find(s, set)
	return one, one.State != ""
}

// Unused returns volumes that no instance has, so that they can be copied, or why there are none.
func Unused(s *cluster.State, set terms.VolumeSet) (Volumes, facts.Refusal) {
	one, _, refusal := unused(s, set)
	return one, refusal.Refusal
}

func unused(s *cluster.State, set terms.VolumeSet) (one Volumes, r facts.SlotRef, refusal report.Result) {
	one, r = find(s, set)
	switch {
	case one.State == "":
		refusal = report.Refuse(facts.NotFound, "there are no volumes %s", set)
	case one.State == InUse, r.Job != 0 && s.Job(r.Job).Tasks[r.Task].SecondaryHeld(r):
		refusal = report.Refuse(facts.Conflict, "an instance has the volumes %s: suspend or stop its job first, or drain its node with --deadline 0", set)
	}
	return one, r, refusal
}

// find returns what becomes of a set, as List does, and the slot that has it, if that is there. The state is empty if
// nothing is known of it. Remove is older, and also finds what a task had that has no volumes any more.
func find(s *cluster.State, set terms.VolumeSet) (one Volumes, r facts.SlotRef) {
	kept, ok := s.Volumes().Get(set)
	if ok && kept.User == 0 {
		return Volumes{set, s.Node(kept.Node).Name, Kept, kept.Order, kept.Since, kept.Until}, r
	}
	j := s.JobOf(set.Slot.Job)
	if j == nil || s.Expired(j.ID) {
		return one, r
	}
	if now, _, _ := s.Volumes().Of(set.Slot, j.ID); now != set {
		return one, r
	}
	if r, there := s.RefOf(set.Slot); there {
		if j.HasVolumes(int(r.Task)) {
			one, _ = ofSlot(s, j, r)
		}
		return one, r
	}
	if ok && !kept.Empty {
		one = Volumes{set, s.Node(kept.Node).Name, Kept, kept.Order, kept.Since, kept.Until}
	}
	return one, r
}

// Renew lets a slot of a job begin with empty volumes: nobody will come back for those that it had.
func Renew(s *cluster.State, slot terms.SlotName, job terms.JobID) {
	if s.Rules >= rules.Volumes {
		s.LastJob++
		s.Volumes().Renew(slot, job, s.LastJob, facts.Volumes{User: job, Empty: true, Order: s.Index, Since: s.Time})
	}
}
