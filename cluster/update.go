package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
	"starling/terms/fingerprint"
)

// SpecOf returns the version with the given number, 0 for the newest, nil if it is not kept.
func (j *Job) SpecOf(version uint32) *terms.Job {
	if version == j.Version || version == 0 {
		return j.Spec
	}
	for i := range j.Versions {
		if j.Versions[i].Number == version {
			return j.Versions[i].Spec
		}
	}
	return nil
}

// AddVersion makes spec the newest version of a job that is not finished. Instances that are as good as ones of the new
// version are of it from now on; how many there are to be is not changed. Where rules about nodes differ, suits tells whether
// a node satisfies those of the newest version for an instance of a task that it has: that instance is not counted then, nor are those
// of the task of which it was told before that they do not stay.
func (s *State) AddVersion(id terms.JobID, v facts.JobVersion, suits func(facts.TaskKey, facts.NodeIndex) bool) {
	for task, t := range s.Job(id).Tasks {
		if t.Restarts > 0 {
			s.SetRestarts(id, task, 0)
		}
	}
	s.countPriority(s.Job(id), -s.Job(id).live())
	s.changeJob(id, func(j *Job) { j.addVersion(s, v) })
	s.regroup(s.Job(id))
	s.countPriority(s.Job(id), s.Job(id).live())
	j := s.Job(id)
	for task := range j.Tasks {
		s.adopt(j, task, suits)
	}
	s.tryAnew(id)
	s.dropVersions(id)
}

// live returns how many seats of all tasks hold room.
func (j *Job) live() int64 {
	count := int64(0)
	for _, t := range j.Tasks {
		count += int64(t.Live())
	}
	return count
}

func (j *Job) addVersion(s *State, v facts.JobVersion) {
	j.Version++
	j.Fate.Restarts = 0
	v.Number, v.Index, v.At, v.SpecHash = j.Version, s.Index, s.Time, fingerprint.Job(v.Spec)
	j.Versions = append(j.Versions, v)
	j.Spec, j.Changed = v.Spec, s.Index
	for i := range v.Spec.Tasks {
		if name := v.Spec.Tasks[i].Name; j.TaskIndex(name) < 0 {
			t := newTask(j.edition, name)
			t.row = t.hash(j.ID, len(j.Tasks))
			s.digest += t.row
			j.Tasks = append(j.Tasks, t)
		}
	}
	s.setWants(j)
	j.setGang()
	j.setGraph(s)
	j.setSharing(s)
}

// adopt gives the newest version to the allocations that are as good as of it, and counts anew.
func (s *State) adopt(j *Job, task int, suits func(facts.TaskKey, facts.NodeIndex) bool) {
	changes := map[uint32]terms.Change{}
	for i := range j.Versions {
		if v := j.Versions[i].Number; v != j.Version {
			changes[v] = j.ChangeOf(task, v)
		}
	}
	var good, leaving []facts.SlotRef
	s.EachSlot(j.ID, task, func(r facts.SlotRef, slot facts.Slot) bool {
		change, older := changes[slot.Version]
		if older && change != terms.Replace && (slot.Phase != facts.Stopping || slot.Cause == facts.BySuspension) {
			good = append(good, r)
		}
		return true
	})
	for _, r := range good {
		slot, _ := s.SlotAt(r)
		s.countSlot(r, &slot, -1)
		if changes[slot.Version] == terms.ByNode && slot.Phase.Stays() && !suits(facts.KeyOf(j.ID, task), slot.Node) {
			leaving = append(leaving, r)
			continue
		}
		slot.Version = j.Version
		s.countSlot(r, &slot, 1)
		if slot.Phase == facts.Waiting && r.Seat == facts.MainSeat {
			slot.Version = 0
		}
		s.putSlot(s.Job(j.ID), r, slot)
	}
	for _, r := range leaving {
		slot, _ := s.SlotAt(r)
		s.countSlot(r, &slot, 1)
	}
	s.recount(s.Job(j.ID), task)
}

// dropVersions forgets old versions that no instance has any more.
func (s *State) dropVersions(id terms.JobID) {
	j := s.Job(id)
	if len(j.Versions) <= int(s.Limits.Versions) {
		return
	}
	used := map[uint32]bool{j.Good(j.Version): true, j.Update.From: true}
	for task := range j.Tasks {
		s.EachSlot(id, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			used[slot.Version] = true
			return true
		})
	}
	s.changeJob(id, func(j *Job) {
		oldest := j.Version - s.Limits.Versions
		j.Versions = slices.DeleteFunc(j.Versions, func(v facts.JobVersion) bool { return v.Number <= oldest && !used[v.Number] })
	})
}

// SetUpdate replaces the job's record of its update, notes how it ended on the version that it brought, and looks to the
// time by which it must get on; 0 for none. Of a job that has ended it is the time when it is forgotten.
func (s *State) SetUpdate(id terms.JobID, u facts.Update, deadline terms.Time) {
	r := facts.RefOfUpdate(id)
	s.changeJob(id, func(j *Job) {
		if j.Finished != 0 {
			deadline = j.forgetAt()
		}
		s.dropUpdateDeadline(j)
		j.Update, j.UpdateDeadline = u, deadline
		if deadline != 0 {
			s.deadlines.Set(due{deadline, r})
		}
		for i := range j.Versions {
			if u.State.Final() && j.Versions[i].Number == u.To {
				j.Versions[i].Outcome = u.State
			}
		}
	})
}

// ChangeOf returns what the newest version means for an instance of a task in an earlier version.
func (j *Job) ChangeOf(task int, version uint32) terms.Change {
	now := j.TaskSpecOf(task, j.Version)
	change := j.TaskSpecOf(task, version).ChangeTo(now)
	if old := j.SpecOf(version); old != nil {
		change = max(change, old.ChangeTo(j.Spec))
	}
	for i := range j.Versions {
		v := &j.Versions[i]
		if change != terms.Replace && v.Kind == facts.Restarted && v.Number > version && (v.Task == "" || v.Task == now.Name) {
			return terms.Replace
		}
	}
	return change
}
