package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/fingerprint"
)

// Job returns a job by its number, nil if it is forgotten.
func (s *State) Job(id terms.JobID) *workload.Job {
	j, _ := s.jobs.Get(id)
	return j
}

// JobOf returns a job by its name, nil if there is none.
func (s *State) JobOf(name terms.JobName) *workload.Job {
	id, ok := s.jobNames.Get(name)
	if !ok {
		return nil
	}
	return s.Job(id)
}

// Jobs returns how many jobs are kept.
func (s *State) Jobs() int { return s.jobs.Len() }

// WithUserOf returns another known job with the same user of its own as one of a name has; ok is false if none has.
func (s *State) WithUserOf(name terms.JobName) (terms.JobName, bool) {
	return s.jobNames.WithUserOf(name)
}

// OpenJobs returns how many jobs have not finished.
func (s *State) OpenJobs() int { return s.jobs.Len() - int(s.finished.Sums().Jobs) }

// EachJob visits the jobs in the order of their submission until visit returns false.
func (s *State) EachJob(visit func(*workload.Job) bool) {
	s.jobs.Scan(func(_ terms.JobID, j *workload.Job) bool { return visit(j) })
}

// EachJobByName visits the jobs in the order of their names, from the given one on, until visit returns false.
func (s *State) EachJobByName(from terms.JobName, visit func(*workload.Job) bool) {
	s.jobNames.Ascend(from, func(_ terms.JobName, id terms.JobID) bool { return visit(s.Job(id)) })
}

// EachDaemon visits the daemon jobs that have not finished, oldest first, until visit returns false.
func (s *State) EachDaemon(visit func(terms.JobID) bool) { s.daemons.Scan(visit) }

func (s *State) editJob(id terms.JobID) *workload.Job {
	s.noteEdited(id)
	j := s.Job(id)
	if own := j.Own(s.epoch); own != j {
		s.jobs.Set(id, own)
		return own
	}
	return j
}

func (s *State) editTask(j *workload.Job, task int) *workload.Task {
	s.visited++
	t := j.Tasks[task]
	if own := t.Own(s.epoch); own != t {
		j.Tasks[task] = own
		return own
	}
	return t
}

// changeJob applies change to the job and counts the digest.
func (s *State) changeJob(id terms.JobID, change func(*workload.Job)) {
	j := s.editJob(id)
	change(j)
	s.countJob(j)
	s.PlacementDirty = s.PlacementDirty || j.Spec.Shares() // a job that stops, or is suspended, takes no virtual peers
}

// countJob counts the job's row in the digest.
func (s *State) countJob(j *workload.Job) {
	s.digest -= j.Row
	j.Row = j.Hash()
	s.digest += j.Row
}

// changeTask applies change to the task and counts the digest.
func (s *State) changeTask(id terms.JobID, task int, change func(*workload.Task)) {
	t := s.editTask(s.editJob(id), task)
	change(t)
	s.digest -= t.Row
	t.Row = t.RowHash(id, task)
	s.digest += t.Row
}

// AddJob keeps a new job with all its slots waiting. The name must be free.
func (s *State) AddJob(spec *terms.Job) *workload.Job {
	s.LastJob++
	s.noteEdited(s.LastJob)
	j := workload.NewJob(s.epoch, facts.Job{ID: s.LastJob, Submitted: s.Index, SubmittedAt: s.Time})
	number, found := s.pools.Find(spec.Name.Pool())
	if facts.Assert(found || spec.Type == terms.Daemon, "the pool of a job is there"); found {
		j.Pool = s.pools.IDs[number]
	}
	s.editAccount(j.Pool).Jobs++
	s.jobs.Set(j.ID, j)
	s.jobNames.Set(spec.Name, j.ID)
	s.addVersion(j, facts.JobVersion{Kind: facts.Submitted, Spec: spec})
	j.Row = j.Hash()
	s.digest += j.Row
	s.markRosterDirty(j)
	if spec.Type == terms.Daemon {
		s.daemons.Insert(j.ID)
	}
	for task := range j.Tasks {
		want := spec.Tasks[task].Instances
		if spec.Type == terms.Daemon {
			want = 0
		}
		s.changeTask(j.ID, task, func(t *workload.Task) { s.want(t, j.ID, task, want) })
	}
	s.queueAll(j)
	return j
}

// AddVersion makes spec the newest version of a job that is not finished. Instances that are as good as ones of the new
// version are of it from now on; how many there are to be is not changed. Where rules about nodes differ, suits tells
// whether a node satisfies those of the newest version for an instance of a task that it has: that instance is not
// counted then, nor are those of the task of which it was told before that they do not stay.
func (s *State) AddVersion(id terms.JobID, v facts.JobVersion, suits func(facts.TaskKey, facts.NodeIndex) bool) {
	for task, t := range s.Job(id).Tasks {
		if t.Restarts > 0 {
			s.SetRestarts(id, task, 0)
		}
	}
	was := s.Job(id).Spec
	s.changeJob(id, func(j *workload.Job) { s.addVersion(j, v) })
	s.markRosterDirty(s.Job(id))
	j := s.Job(id)
	s.reclass(j, was)
	for task := range j.Tasks {
		s.adopt(j, task, suits)
	}
	s.tryAnew(id)
	s.doubts.Add(id)
	s.dropVersions(id)
}

func (s *State) addVersion(j *workload.Job, v facts.JobVersion) {
	s.countSpecs(j, -1)
	j.Version++
	j.PolicyState.Restarts = 0
	v.Number, v.Index, v.At = j.Version, s.Index, s.Time
	v.SpecHash, v.SpecBytes = fingerprint.Measured(v.Spec)
	j.Versions = append(j.Versions, v)
	s.countSpecs(j, 1)
	j.Spec, j.Changed = v.Spec, s.Index
	for i := range v.Spec.Tasks {
		if name := v.Spec.Tasks[i].Name; j.TaskIndex(name) < 0 {
			j.Tasks = append(j.Tasks, workload.NewTask(s.epoch, name)) // setWants counts its row
		}
	}
	s.setWants(j)
	j.SetGang()
	s.setGraph(j)
	s.setSharing(j)
}

// adopt gives the newest version to the allocations that are as good as of it, and counts anew.
func (s *State) adopt(j *workload.Job, task int, suits func(facts.TaskKey, facts.NodeIndex) bool) {
	changes := map[uint32]terms.Change{}
	for i := range j.Versions {
		if v := j.Versions[i].Number; v != j.Version {
			changes[v] = j.ChangeOf(task, v, s.Rules)
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
	s.editTask(s.editJob(j.ID), task).Recount(s.Job(j.ID), task)
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
	s.changeJob(id, func(j *workload.Job) {
		s.countSpecs(j, -1)
		oldest := j.Version - s.Limits.Versions
		j.Versions = slices.DeleteFunc(j.Versions,
			func(v facts.JobVersion) bool { return v.Number <= oldest && !used[v.Number] })
		s.countSpecs(j, 1)
	})
}

// SetUpdate replaces the job's record of its update, notes how it ended on the version that it brought, and looks to
// the time by which it must get on; 0 for none. Of a job that has ended it is the time when it is forgotten.
func (s *State) SetUpdate(id terms.JobID, u facts.Update, deadline terms.Time) {
	r := facts.RefOfUpdate(id)
	s.changeJob(id, func(j *workload.Job) {
		if j.Finished != 0 {
			deadline = j.ForgetAt()
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

// SetPolicyState replaces what policies made of a job.
func (s *State) SetPolicyState(id terms.JobID, f facts.PolicyState) {
	s.changeJob(id, func(j *workload.Job) { j.PolicyState = f })
}

// SetRestarts notes how often policies restarted a task in the newest version of its job.
func (s *State) SetRestarts(id terms.JobID, task int, restarts uint32) {
	s.changeTask(id, task, func(t *workload.Task) { t.Restarts = restarts })
}

// SetRestarting lets nothing of a task begin before all that lives of it has ended, or lets it begin again.
func (s *State) SetRestarting(id terms.JobID, task int, restarting bool) {
	s.changeTask(id, task, func(t *workload.Task) { t.Restarting = restarting })
	s.SetBlocked(facts.KeyOf(id, task), false)
	s.SetBlocked(facts.KeyOf(id, task).Special(), false)
}

// SetCompletion notes what policies make of it that a task is complete.
func (s *State) SetCompletion(id terms.JobID, task int, c facts.Completion) {
	r := facts.RefOfTask(id, task)
	s.changeTask(id, task, func(t *workload.Task) {
		s.deadlines.Delete(due{t.Completion.Due, r})
		if c.Due != 0 {
			s.deadlines.Set(due{c.Due, r})
		}
		t.Completion = c
	})
}

// markRosterDirty notes that the list of a job's members may have changed.
func (s *State) markRosterDirty(j *workload.Job) {
	told := len(j.Spec.Plugins) > 0 || j.Roster != facts.Roster{}
	if told && (len(s.dirtyRosters) == 0 || s.dirtyRosters[len(s.dirtyRosters)-1] != j.ID) {
		s.dirtyRosters = append(s.dirtyRosters, j.ID)
	}
}

// TakeDirtyRosters returns the jobs with plugins whose list of members may have changed since it was asked last, each
// once, in the order of age.
func (s *State) TakeDirtyRosters() []terms.JobID {
	if len(s.dirtyRosters) == 0 {
		return nil
	}
	all := s.dirtyRosters
	s.dirtyRosters = nil
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(id terms.JobID) bool { return s.Job(id) == nil })
}

// SetRoster notes the hash of the list of a job's members; if it is another, this entry has made the list what it is.
func (s *State) SetRoster(id terms.JobID, sum uint64) {
	j := s.Job(id)
	switch {
	case len(j.Spec.Plugins) == 0:
		s.changeJob(id, func(j *workload.Job) { j.Roster = facts.Roster{} })
	case j.Roster.Sum != sum || j.Roster.Version == 0:
		s.changeJob(id, func(j *workload.Job) { j.Roster = facts.Roster{Version: s.Index, Sum: sum} })
	}
}

// SetFailure notes the latest failure of a task.
func (s *State) SetFailure(id terms.JobID, task int, failure facts.Failure) {
	s.changeTask(id, task, func(t *workload.Task) { t.Failure, t.FailureHash = failure, failure.Hash() })
}

// SetPreemption notes the latest allocation of a task that gave way.
func (s *State) SetPreemption(r facts.SlotRef, p facts.Preemption) {
	s.changeTask(r.Job, int(r.Task), func(t *workload.Task) { t.Preemption = p })
}
