// Package storage applies what is asked for about volumes.
package storage

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/rules"
)

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

// Renew lets a slot of a job begin with empty volumes: nobody will come back for those that it had.
func Renew(s *cluster.State, slot terms.SlotName, job terms.JobID) {
	if s.Rules >= rules.Volumes {
		s.LastJob++
		s.Volumes().Renew(slot, job, s.LastJob, facts.Volumes{User: job, Empty: true, Order: s.Index, Since: s.Time})
	}
}
