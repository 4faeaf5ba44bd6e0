package cluster

import (
	"starling/terms"
	"starling/terms/fingerprint"
)

// UpdateState is how far an update is.
type UpdateState uint8

// The states of an update. Succeeded, rolled back, failed and aborted are final.
const (
	// NoUpdate is the state of a job that has none.
	NoUpdate UpdateState = iota
	// RollingForward: instances are moved to the new version.
	RollingForward
	// Paused: what is under way ends, and nothing begins.
	Paused
	// RollingBackward: it failed, and instances are moved back to the version before.
	RollingBackward
	// UpdateSucceeded: all instances have the new version.
	UpdateSucceeded
	// RolledBack: all instances have the version before again.
	RolledBack
	// UpdateFailed: it failed, and instances stay as they are.
	UpdateFailed
	// UpdateAborted: its user ended it, or a newer update took its place.
	UpdateAborted
	UpdateStateCount
)

// String returns the state as the user guide writes it.
func (s UpdateState) String() string {
	return [...]string{"", "ROLLING_FORWARD", "PAUSED", "ROLLING_BACKWARD", "SUCCEEDED", "ROLLED_BACK", "FAILED", "ABORTED"}[s]
}

// Final tells whether the update has ended.
func (s UpdateState) Final() bool { return s >= UpdateSucceeded }

// Rolls tells whether instances are being moved.
func (s UpdateState) Rolls() bool { return s == RollingForward || s == RollingBackward }

// Update is the record of a job's latest update: its move from one version to another.
type Update struct {
	State UpdateState
	// Before is the state that a resume returns to.
	Before UpdateState
	// Promoted tells that the canaries were found good, or that there are none; Tried, that all were healthy last, and nobody promoted them.
	Promoted, Tried bool
	// From is the version before, 0 if the update brings the job; To is the version that instances are moved to.
	From, To uint32
	// Began is the entry that began it.
	Began   terms.Index
	BeganAt terms.Time
	// ProgressAt is when an instance became healthy last, or when waiting for one began, and 0 while all that is tried waits for
	// room; EndedAt is when it ended.
	ProgressAt, EndedAt terms.Time
	// LookedAt is the entry with which room was looked for last in vain, for instances that are to take the place of earlier ones.
	LookedAt terms.Index
	// Reason tells in words why it is paused or ended as it did; it may be empty.
	Reason string
}

// VersionKind is what brought a version.
type VersionKind uint8

// The kinds.
const (
	// Submitted: a user wrote it.
	Submitted VersionKind = iota + 1
	// Reverted: a user went back to version Of.
	Reverted
	// Restarted: a user asked for new instances of version Of.
	Restarted
	// WentBack: a failed update went back to version Of.
	WentBack
)

// String returns the kind in words.
func (k VersionKind) String() string {
	return [...]string{"unknown", "submitted", "reverted", "restarted", "rolled back"}[k]
}

// JobVersion is one version of a job.
type JobVersion struct {
	Number uint32
	// Of is the version that it is a copy of, 0 if it is none.
	Of   uint32
	Kind VersionKind
	// Outcome is how the update to it ended, NoUpdate while it has not.
	Outcome UpdateState
	// Task is the only one that was restarted, "" for all.
	Task  terms.TaskName
	Index terms.Index
	At    terms.Time
	Spec  *terms.Job
	// hash is that of the spec.
	hash uint64
}

// Versions returns the kept versions, oldest first. They must not be changed.
func (j *Job) Versions() []JobVersion { return j.versions }

// SpecOf returns the version with the given number, 0 for the newest, nil if it is not kept.
func (j *Job) SpecOf(version uint32) *terms.Job {
	if version == j.Version || version == 0 {
		return j.Spec
	}
	for i := range j.versions {
		if j.versions[i].Number == version {
			return j.versions[i].Spec
		}
	}
	return nil
}

// Good returns the newest version below the given one whose update succeeded, 0 if there is none.
func (j *Job) Good(below uint32) uint32 {
	for i := len(j.versions) - 1; i >= 0; i-- {
		if v := &j.versions[i]; v.Number < below && (v.Outcome == UpdateSucceeded || v.Outcome == RolledBack) {
			return v.Number
		}
	}
	return 0
}

// AddVersion makes spec the newest version of a job that is not finished. Instances that are as good as ones of the new
// version are of it from now on; how many there are to be is not changed. Where rules about nodes differ, suits tells whether
// a node satisfies those of the newest version for an instance of a task that it has: that instance is not counted then, nor are those
// of the task of which it was told before that they do not stay.
func (s *State) AddVersion(id terms.JobID, v JobVersion, suits func(TaskKey, NodeIndex) bool) {
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

func (j *Job) addVersion(s *State, v JobVersion) {
	j.Version++
	j.Fate.Restarts = 0
	v.Number, v.Index, v.At, v.hash = j.Version, s.Index, s.Time, fingerprint.Job(v.Spec)
	j.versions = append(j.versions, v)
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
func (s *State) adopt(j *Job, task int, suits func(TaskKey, NodeIndex) bool) {
	changes := map[uint32]terms.Change{}
	for i := range j.versions {
		if v := j.versions[i].Number; v != j.Version {
			changes[v] = j.ChangeOf(task, v)
		}
	}
	var good, leaving []SlotRef
	s.EachSlot(j.ID, task, func(r SlotRef, slot Slot) bool {
		change, older := changes[slot.Version]
		if older && change != terms.Replace && (slot.Phase != Stopping || slot.Cause == BySuspension) {
			good = append(good, r)
		}
		return true
	})
	for _, r := range good {
		slot, _ := s.SlotAt(r)
		s.countSlot(r, &slot, -1)
		if changes[slot.Version] == terms.ByNode && slot.Phase.Stays() && !suits(KeyOf(j.ID, task), slot.Node) {
			leaving = append(leaving, r)
			continue
		}
		slot.Version = j.Version
		s.countSlot(r, &slot, 1)
		if slot.Phase == Waiting && r.Seat == MainSeat {
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
	if len(j.versions) <= int(s.Limits.Versions) {
		return
	}
	used := map[uint32]bool{j.Good(j.Version): true, j.Update.From: true}
	for task := range j.Tasks {
		s.EachSlot(id, task, func(_ SlotRef, slot Slot) bool {
			used[slot.Version] = true
			return true
		})
	}
	s.changeJob(id, func(j *Job) {
		oldest := j.Version - s.Limits.Versions
		j.versions = without(j.versions, func(v JobVersion) bool { return v.Number <= oldest && !used[v.Number] })
	})
}

// SetUpdate replaces the job's record of its update, notes how it ended on the version that it brought, and looks to the
// time by which it must get on; 0 for none. Of a job that has ended it is the time when it is forgotten.
func (s *State) SetUpdate(id terms.JobID, u Update, deadline terms.Time) {
	r := SlotRef{Job: id, Task: jobDeadline}
	s.changeJob(id, func(j *Job) {
		if j.Finished != 0 {
			deadline = j.forgetAt()
		}
		s.dropUpdateDeadline(j)
		j.Update, j.updateDeadline = u, deadline
		if deadline != 0 {
			s.deadlines.Set(due{deadline, r})
		}
		for i := range j.versions {
			if u.State.Final() && j.versions[i].Number == u.To {
				j.versions[i].Outcome = u.State
			}
		}
	})
}

func (u *Update) hash() uint64 {
	return hashWords(tagJob, uint64(u.State)<<16|uint64(u.Before)<<8|bit(u.Tried)<<1|bit(u.Promoted), uint64(u.From)<<32|uint64(u.To), uint64(u.Began),
		uint64(u.BeganAt), uint64(u.ProgressAt), uint64(u.EndedAt), uint64(u.LookedAt), hashText(tagJob, u.Reason))
}

// ChangeOf returns what the newest version means for an instance of a task in an earlier version.
func (j *Job) ChangeOf(task int, version uint32) terms.Change {
	now := j.TaskSpecOf(task, j.Version)
	change := j.TaskSpecOf(task, version).ChangeTo(now)
	if old := j.SpecOf(version); old != nil {
		change = max(change, old.ChangeTo(j.Spec))
	}
	for i := range j.versions {
		v := &j.versions[i]
		if change != terms.Replace && v.Kind == Restarted && v.Number > version && (v.Task == "" || v.Task == now.Name) {
			return terms.Replace
		}
	}
	return change
}
