package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/tree"
	"starling/cluster/workload"
	"starling/terms"
)

// The queue of what waits to be admitted: by pool, and within it in the order in which units have their turn.

// SetGangTried notes that no nodes were found for the job's gang.
func (s *State) SetGangTried(id terms.JobID) {
	j := s.editJob(id)
	j.GangTried = s.Holds
	s.countJob(j)
}

// GangTried tells whether no room was taken anywhere since no nodes were found for the job's gang.
func (s *State) GangTried(j *workload.Job) bool { return j.GangTried == s.Holds }

// queue puts the task's waiting instances where they belong in the queue, and notes what they ask for. A gang that
// begins or ends to be whole is to be tried in another way than before, on all nodes.
func (s *State) queue(j *workload.Job, task int) {
	state := j.GangState()
	changed := state != j.GangWas
	// How many a gang lacks tells how many of a task come first.
	s.PlacementDirty = s.PlacementDirty || state == gang.Broken
	u := j.Unit(state)
	for other := range j.Tasks {
		if changed {
			t := s.editTask(j, other)
			t.Blocked, t.SpecialBlocked = false, false
		}
		if other == task || changed || u.Together {
			s.queueTask(j, other, &u)
		}
	}
	j.GangWas = state
	s.follow(j, task)
}

// queueAll does so for all tasks of a new job at once.
func (s *State) queueAll(j *workload.Job) {
	j.GangWas = j.GangState()
	u := j.Unit(j.GangWas)
	for task := range j.Tasks {
		s.queueTask(j, task, &u)
	}
	for task := range j.Tasks {
		s.follow(j, task)
	}
}

func (s *State) queueTask(j *workload.Job, task int, u *workload.Unit) {
	t, spec := s.editTask(j, task), j.TaskSpecOf(task, j.Version)
	asks, each := t.AskFor(spec), terms.Amounts{}
	began := t.QueueEntry.Key
	if j.Idle(task) || t.Unsuited && t.SpecialWaits() == 0 {
		asks = 0
	}
	// Nobody tells what comes to pass around nodes while nothing asks for room.
	t.Blocked, t.SpecialBlocked = t.Blocked && asks > 0 && t.Waits() > 0,
		t.SpecialBlocked && asks > 0 && t.SpecialWaits() > 0
	if spec != nil {
		each = spec.Amounts()
	}
	s.ask(j, t, asks, each)
	entry := workload.QueueEntry{Pool: j.Account(), Rank: u.Rank, Key: facts.KeyOf(j.ID, task), Need: each,
		Class: j.Spec.Class(), Blocked: t.Blocked}
	if u.Together {
		entry.Need = u.Need
	}
	if s.enqueue(&t.QueueEntry, entry, t.Waits() > 0 && asks > 0); began < t.QueueEntry.Key || t.Unsuited {
		s.doubts.Add(j.ID)
	}
	entry.Key, entry.Blocked = entry.Key.Special(), t.SpecialBlocked
	// Those that wait for a particular version may need less.
	entry.Need = terms.Amounts{}
	s.enqueue(&t.SpecialEntry, entry, t.SpecialWaits() > 0 && asks > 0)
}

// enqueue puts an entry of a task where it belongs. What is there already stays: its soft timeout may be due.
func (s *State) enqueue(old *workload.QueueEntry, entry workload.QueueEntry, waits bool) {
	if !waits {
		entry = workload.QueueEntry{}
	}
	if *old == entry {
		return
	}
	key := old.Key | entry.Key
	if old.Blocked != entry.Blocked {
		s.digest += facts.BlockedHash(key, entry.Blocked) - facts.BlockedHash(key, old.Blocked)
	}
	if old.Key != 0 {
		s.waiting.Delete(*old)
	}
	if entry.Key != 0 {
		s.waiting.Set(entry)
	}
	stays := old.Key != 0 && entry.Key != 0 && old.Blocked == entry.Blocked
	*old = entry
	if !entry.Blocked {
		s.PlacementDirty = true
	}
	if !stays {
		s.resubscribe(key, entry.Key != 0, entry.Blocked)
	}
}

// SetBlocked notes that all nodes were tried for what waits of the task, so that only nodes which grow can help; or
// that all have to be tried.
func (s *State) SetBlocked(key facts.TaskKey, blocked bool) {
	id, task := key.Split()
	j := s.editJob(id)
	t := s.editTask(j, task)
	if key.IsSpecial() {
		t.SpecialBlocked = blocked
	} else {
		t.Blocked = blocked
	}
	s.queue(j, task)
}

// Blocked tells whether all nodes were tried for what waits of the task.
func (s *State) Blocked(key facts.TaskKey) bool { return s.entryOf(key).Blocked }

// Waiting returns how many entries the queue has.
func (s *State) Waiting() int { return s.waiting.Len() }

// QueueStart returns the place before everything that waits in the pool at a number of the tree, -1 for daemons.
func (s *State) QueueStart(number int) workload.QueueEntry {
	if number < 0 {
		return workload.QueueEntry{}
	}
	return workload.QueueEntry{Pool: s.pools.IDs[number]}
}

// NextInQueue returns the first entry of the same pool behind one that is wanted; ok is false if there is none.
func (s *State) NextInQueue(behind workload.QueueEntry,
	wanted func(workload.QueueEntry) bool) (next workload.QueueEntry, ok bool) {
	s.waiting.Ascend(behind, func(t workload.QueueEntry) bool {
		switch {
		case t.Pool != behind.Pool:
			return false
		case t.Pool == behind.Pool && t.Rank == behind.Rank && t.Key == behind.Key || !wanted(t):
			return true
		}
		next, ok = t, true
		return false
	})
	return next, ok
}

// Queued tells whether an entry of a task waits.
func (s *State) Queued(key facts.TaskKey) bool { return s.entryOf(key).Key != 0 }

// entryOf returns an entry of a task.
func (s *State) entryOf(key facts.TaskKey) *workload.QueueEntry {
	id, task := key.Split()
	if key.IsSpecial() {
		return &s.Job(id).Tasks[task].SpecialEntry
	}
	return &s.Job(id).Tasks[task].QueueEntry
}

// QueuedKeys returns all entries, in their order: first by the accounts of their pools.
func (s *State) QueuedKeys() []facts.TaskKey {
	keys := make([]facts.TaskKey, 0, s.waiting.Len())
	s.waiting.Scan(func(t workload.QueueEntry) bool {
		keys = append(keys, t.Key)
		return true
	})
	return keys
}

// TakePreemptionDirty tells whether more or less was held, asked for or given since it was called last.
func (s *State) TakePreemptionDirty() bool {
	moved := s.PreemptionDirty
	s.PreemptionDirty = false
	return moved
}

// MarkPlacementDirty lets placement look again with the next entry.
func (s *State) MarkPlacementDirty() { s.PlacementDirty = true }

// TakePlacementDirty tells whether more or less was held, asked for or offered since it was called last.
func (s *State) TakePlacementDirty() bool {
	dirty := s.PlacementDirty
	s.PlacementDirty = false
	return dirty
}

// Sharers returns the jobs whose instances virtual peers run and that have not finished, the oldest first.
func (s *State) Sharers() []terms.JobID { return s.sharers.Keys() }

// setSharing notes whether virtual peers run the newest version of a job.
func (s *State) setSharing(j *workload.Job) {
	s.setShared(j.Pool, 0) // its tasks are others, or have no shares
	if j.Spec.Shares() {
		s.sharers.Insert(j.ID)
		s.PlacementDirty = true
		return
	}
	s.sharers.Delete(j.ID)
	for task, t := range j.Tasks {
		if t.ShareBound > 0 {
			s.changeTask(j.ID, task, func(t *workload.Task) { t.ShareBound = 0 })
		}
	}
}

// SetShare bounds the instances of a task that run at a time. Those that run already stay.
func (s *State) SetShare(id terms.JobID, task int, share uint32) {
	if s.Job(id).Tasks[task].ShareBound == share+1 {
		return
	}
	facts.Assert(share+1 != 0 && s.Job(id).Spec.Shares(), "only what virtual peers run has a share")
	s.changeTask(id, task, func(t *workload.Task) { t.ShareBound = share + 1 })
	s.SetBlocked(facts.KeyOf(id, task), false)
	s.SetBlocked(facts.KeyOf(id, task).Special(), false)
}

// SharedBy returns the fingerprint of what the virtual peers of the pool at a number were divided from last; ok is
// false if that is not known.
func (s *State) SharedBy(number int) (fingerprint uint64, ok bool) {
	return s.shared.Get(s.pools.IDs[number])
}

// SetShared notes from what the virtual peers of a pool are divided.
func (s *State) SetShared(number int, fingerprint uint64) {
	s.setShared(s.pools.IDs[number], fingerprint)
}

// setShared is SetShared for an account; 0 forgets what is known.
func (s *State) setShared(id tree.ID, fingerprint uint64) {
	old, known := s.shared.Delete(id)
	if known {
		s.digest -= facts.SharedHash(id, old)
	}
	if fingerprint != 0 {
		s.shared.Set(id, fingerprint)
		s.digest += facts.SharedHash(id, fingerprint)
	}
}

// What no node could run, even if it were empty, asks for nothing: what its pool is entitled to would lie idle. It is
// asked about when it begins to wait, or is another, and when nodes offer something else.

// SetUnsuited notes whether no node could run a task even if it were empty.
func (s *State) SetUnsuited(id terms.JobID, task int, unsuited bool) {
	if s.Job(id).Tasks[task].Unsuited != unsuited {
		s.changeTask(id, task, func(t *workload.Task) { t.Unsuited = unsuited })
		s.doubts.Note(id, s.Job(id).Unsuited())
		s.queue(s.Job(id), task)
	}
}

// TakeDoubted returns the jobs of which it is to be asked whether nodes could run them, and forgets that.
func (s *State) TakeDoubted() []terms.JobID {
	return s.doubts.Take(func(visit func(terms.JobID)) {
		s.waiting.Scan(func(t workload.QueueEntry) bool {
			id, _ := t.Key.Split()
			visit(id)
			return true
		})
	})
}
