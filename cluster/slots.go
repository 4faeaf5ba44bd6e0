package cluster

import (
	"slices"

	"github.com/tidwall/btree"
)

// AddJob keeps a new job with all its slots waiting. The name must be free.
func (s *State) AddJob(spec *JobSpec) *Job {
	s.LastJob++
	j := &Job{edition: s.edition, ID: s.LastJob, Submitted: s.Index, Changed: s.Index, SubmittedAt: s.Time}
	s.jobs.Set(j.ID, j)
	s.jobNames.Set(spec.Name, j.ID)
	j.setSpec(spec)
	j.row = j.hash()
	s.digest += j.row
	s.resizeTasks(j)
	return j
}

// SetSpec makes spec the newest version of a job that is not finished. Slots keep the version they run.
func (s *State) SetSpec(id JobID, spec *JobSpec) {
	s.changeJob(id, func(j *Job) {
		j.older = append(j.older, olderSpec{j.Version, j.Spec})
		j.setSpec(spec)
		j.Changed = s.Index
	})
	s.resizeTasks(s.Job(id))
	for task := range s.Job(id).Tasks {
		s.SetBlocked(KeyOf(id, task), false)
	}
	s.dropOlder(id)
}

func (j *Job) setSpec(spec *JobSpec) {
	j.Spec, j.specHash = spec, spec.hash()
	j.Version++
	for i := range spec.Tasks {
		if j.TaskIndex(spec.Tasks[i].Name) < 0 {
			j.Tasks = append(j.Tasks, &Task{
				edition: j.edition, Name: spec.Tasks[i].Name, returned: new(btree.Set[uint32]), nameHash: hashText(tagTask, string(spec.Tasks[i].Name)),
			})
		}
	}
}

// dropOlder forgets versions that no slot runs any more.
func (s *State) dropOlder(id JobID) {
	j := s.Job(id)
	if len(j.older) == 0 {
		return
	}
	used := map[uint32]bool{}
	for _, t := range j.Tasks {
		if t.Counts[Assigned]+t.Counts[Running]+t.Counts[Delayed]+t.Counts[Stopping] == 0 {
			continue
		}
		for i := range t.Slots.Len() {
			if slot := t.Slots.At(i); slot.Phase.Holds() {
				used[slot.Version] = true
			}
		}
	}
	s.changeJob(id, func(j *Job) {
		j.older = without(j.older, func(o olderSpec) bool { return !used[o.version] })
	})
}

// resizeTasks gives every task as many slots as the newest version wants. Slots beyond that which hold room stay until
// they have ended.
func (s *State) resizeTasks(j *Job) {
	for i, t := range j.Tasks {
		want := uint32(0)
		if spec := j.TaskSpecOf(i, j.Version); spec != nil {
			want = spec.Instances
		}
		if t.Desired != want || t.row == 0 {
			s.setDesired(j.ID, i, want)
		}
	}
}

func (s *State) setDesired(id JobID, task int, want uint32) {
	s.changeTask(id, task, func(t *Task) {
		j := s.Job(id)
		old := t.Desired
		t.Desired = want
		if n := t.Slots.Len(); uint32(n) < want {
			t.Slots.Resize(s.edition, int(want))
			t.Counts[Waiting] += want - uint32(n)
		}
		for index := old; index < min(want, t.Fresh); index++ {
			if slot := t.Slots.At(int(index)); slot.Phase == Stopped || slot.Phase == Waiting {
				s.putSlot(j, task, index, Slot{Order: slot.Order, Node: slot.Node})
			}
		}
		for t.returned.Len() > 0 {
			last, _ := t.returned.GetAt(t.returned.Len() - 1)
			if last < want {
				break
			}
			t.returned.Delete(last)
		}
		s.trim(t, SlotRef{Job: id, Task: uint16(task)})
		t.blocked = false
		s.queue(j, task)
	})
}

// trim drops the slots at the end that are not desired and hold nothing.
func (s *State) trim(t *Task, r SlotRef) {
	n := t.Slots.Len()
	for ; uint32(n) > t.Desired; n-- {
		slot := t.Slots.At(n - 1)
		if slot.Phase.Holds() {
			break
		}
		r.Index = uint32(n - 1)
		t.Counts[slot.Phase]--
		s.count(t, -slot.hash(r))
	}
	if n < t.Slots.Len() {
		t.Slots.Resize(s.edition, n)
		t.Fresh = min(t.Fresh, uint32(n))
	}
}

func (s *State) count(t *Task, change uint64) {
	t.digest += change
	s.digest += change
}

// queue puts the task among those that placement looks at, or takes it out.
func (s *State) queue(j *Job, task int) {
	t, key := j.Tasks[task], KeyOf(j.ID, task)
	s.unblocked.Delete(key)
	s.blocked.Delete(key)
	switch {
	case t.Waits() == 0:
	case t.blocked:
		s.blocked.Insert(key)
	default:
		s.unblocked.Insert(key)
	}
	s.attend(key, t.Waits() > 0, t.blocked)
}

// SetBlocked notes that all nodes were tried for what waits of the task, so that only nodes which grow can help; or
// that all have to be tried.
func (s *State) SetBlocked(key TaskKey, blocked bool) {
	id, task := key.Split()
	j := s.editJob(id)
	s.editTask(j, task).blocked = blocked
	s.queue(j, task)
}

// Queued returns the tasks with waiting slots, oldest job first: those for which every node has to be tried, and with
// blocked also those for which only nodes that grew can help.
func (s *State) Queued(blocked bool) []TaskKey {
	keys := s.unblocked.Keys()
	if blocked && s.blocked.Len() > 0 {
		keys = append(keys, s.blocked.Keys()...)
		slices.Sort(keys)
	}
	return keys
}

// Blocked tells whether all nodes were tried for what waits of the task.
func (s *State) Blocked(key TaskKey) bool { return s.blocked.Contains(key) }

// SlotAt returns a slot; ok is false if there is none with that number.
func (s *State) SlotAt(r SlotRef) (slot Slot, ok bool) {
	j := s.Job(r.Job)
	if j == nil || int(r.Task) >= len(j.Tasks) || int(r.Index) >= j.Tasks[r.Task].Slots.Len() {
		return Slot{}, false
	}
	return j.Tasks[r.Task].Slots.At(int(r.Index)), true
}

// NameOf returns the slot's name.
func (s *State) NameOf(r SlotRef) SlotName {
	j := s.Job(r.Job)
	return SlotName{Job: j.Name(), Task: j.Tasks[r.Task].Name, Index: r.Index}
}

// RefOf returns the slot with the given name; ok is false if there is none.
func (s *State) RefOf(name SlotName) (r SlotRef, ok bool) {
	j := s.JobOf(name.Job)
	if j == nil {
		return SlotRef{}, false
	}
	task := j.TaskIndex(name.Task)
	if task < 0 || int(name.Index) >= j.Tasks[task].Slots.Len() {
		return SlotRef{}, false
	}
	return SlotRef{Job: j.ID, Task: uint16(task), Index: name.Index}, true
}

// SetSlot replaces a slot and keeps all books. A slot that goes from one node to another must have ended between.
func (s *State) SetSlot(r SlotRef, next Slot) {
	j := s.editJob(r.Job)
	t := s.editTask(j, int(r.Task))
	old := t.Slots.At(int(r.Index))
	switch {
	case old.Phase.Holds() && !next.Phase.Holds():
		s.release(j.TaskSpecOf(int(r.Task), old.Version), r, old.Node)
	case !old.Phase.Holds() && next.Phase.Holds():
		s.hold(j.TaskSpecOf(int(r.Task), next.Version), r, next.Node)
	case old.Phase.Holds() && (old.Node != next.Node || old.Version != next.Version):
		panic("cluster: slot " + s.NameOf(r).String() + " changed its node without an end")
	}
	s.putSlot(j, int(r.Task), r.Index, next)
	if old.Phase == Waiting || next.Phase == Waiting {
		if next.Phase == Waiting {
			t.blocked = false
		}
		s.queue(j, int(r.Task))
	}
	if r.Index >= t.Desired && !next.Phase.Holds() {
		s.changeTask(r.Job, int(r.Task), func(t *Task) { s.trim(t, SlotRef{Job: r.Job, Task: r.Task}) })
	}
}

// SetFailure notes the latest failure of a task.
func (s *State) SetFailure(id JobID, task int, failure Failure) {
	s.changeTask(id, task, func(t *Task) { t.Failure, t.failureHash = failure, failure.hash() })
}

// putSlot replaces the row and counts it; room and queues are the caller's.
func (s *State) putSlot(j *Job, task int, index uint32, next Slot) {
	t := s.editTask(j, task)
	r := SlotRef{Job: j.ID, Task: uint16(task), Index: index}
	old := t.Slots.At(int(index))
	t.Counts[old.Phase]--
	t.Counts[next.Phase]++
	s.count(t, next.hash(r)-old.hash(r))
	t.Slots.Set(s.edition, int(index), next)
	if old.Phase == Delayed {
		s.deadlines.Delete(deadline{old.NotBefore, r})
	}
	if next.Phase == Delayed {
		s.deadlines.Set(deadline{next.NotBefore, r})
	}
	switch {
	case next.Phase == Waiting && index < t.Fresh && index < t.Desired:
		t.returned.Insert(index)
	case old.Phase == Waiting && next.Phase != Waiting && index < t.Fresh:
		t.returned.Delete(index)
	}
}

// Assign gives a node to the lowest count waiting slots of a task, as ordered by the present entry, and visits them.
// There must be as many, and the node must have the room.
func (s *State) Assign(key TaskKey, n NodeIndex, count uint32, visit func(SlotRef)) {
	id, task := key.Split()
	s.changeTask(id, task, func(t *Task) {
		j := s.Job(id)
		spec := j.TaskSpecOf(task, j.Version)
		for range count {
			index, ok := t.returned.Min()
			if !ok {
				index = t.Fresh
				t.Fresh++
			}
			r := SlotRef{Job: id, Task: uint16(task), Index: index}
			old := t.Slots.At(int(index))
			s.putSlot(j, task, index, Slot{
				Order: s.Index, Since: s.Time, Node: n, Version: j.Version, Phase: Assigned, Failures: old.Failures,
			})
			s.hold(spec, r, n)
			if visit != nil {
				visit(r)
			}
		}
		if t.Waits() == 0 {
			s.queue(j, task)
		}
	})
}
