package cluster

import (
	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/cluster/volumes"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/rules"
)

// SetDesired changes how many slots of a task there should be. Slots beyond that which hold room stay until they have
// ended; the others are dropped.
func (s *State) SetDesired(id terms.JobID, task int, want uint32) {
	facts.Assert(want <= max(s.Limits.JobInstances, s.Limits.Nodes), "a task wants no more instances than a job may have")
	s.changeTask(id, task, func(t *workload.Task) {
		s.want(t, id, task, want)
		s.queue(s.Job(id), task)
	})
}

// want gives a task so many slots, and leaves the queue to whoever asks.
func (s *State) want(t *workload.Task, id terms.JobID, task int, want uint32) {
	j := s.Job(id)
	if n := t.Slots.Len(); uint32(n) < want {
		t.Slots.Resize(s.epoch, int(want))
		t.Counts[facts.Waiting] += want - uint32(n)
	}
	old := t.Desired
	t.Desired = want
	s.markRosterDirty(j)
	from, to := facts.SlotRef{Job: id, Task: uint16(task), Index: min(old, want)}, facts.SlotRef{Index: max(old, want)}
	t.TallyFrom(j, from, to, want > old)
	for index := old; index < min(want, t.Fresh); index++ {
		r := facts.SlotRef{Job: id, Task: uint16(task), Index: index}
		if slot := t.Slots.At(int(index)); slot.Phase == facts.Stopped || slot.Phase == facts.Waiting {
			back := facts.Slot{Order: slot.Order, Node: slot.Node}
			if s.Rules >= rules.Volumes && back.Order != 0 && j.HasVolumes(task) {
				back.Preference = facts.OnlyNode
			}
			s.putSlot(j, r, back)
		}
	}
	s.findVolumes(t, facts.SlotRef{Job: id, Task: uint16(task), Index: old})
	for ; j.Spec.Type == terms.Daemon && t.Fresh < want; t.Fresh++ {
		// A daemon's slots belong to their nodes: each waits only once its node can have it.
		s.putSlot(j, facts.SlotRef{Job: id, Task: uint16(task), Index: t.Fresh},
			facts.Slot{Phase: facts.Stopped, Version: j.Version})
	}
	t.CutReturned(want)
	s.unwish(t, facts.SlotRef{Job: id, Task: uint16(task), Index: want})
	s.trim(t, facts.SlotRef{Job: id, Task: uint16(task)})
	t.Blocked, t.SpecialBlocked = false, false
}

// unwish takes the seats from a slot on out of those that wait for a particular node or version.
func (s *State) unwish(t *workload.Task, from facts.SlotRef) {
	for {
		r, ok := t.CutSpecial(from)
		if !ok {
			return
		}
		if r.Seat != facts.MainSeat {
			s.putSlot(s.Job(r.Job), r, facts.Slot{})
		}
	}
}

// trim drops the slots at the end that are not desired and hold nothing.
func (s *State) trim(t *workload.Task, r facts.SlotRef) {
	n := t.Slots.Len()
	for ; uint32(n) > t.Desired; n-- {
		r.Index, r.Seat = uint32(n-1), facts.MainSeat
		if slot := t.Slots.At(n - 1); slot.Phase.Holds() || t.SecondaryHeld(r) {
			break
		}
		s.drop(t, r)
	}
	if n < t.Slots.Len() {
		t.Slots.Resize(s.epoch, n)
		t.Fresh = min(t.Fresh, uint32(n))
	}
}

// drop forgets a slot that holds nothing, with all that is kept of it.
func (s *State) drop(t *workload.Task, r facts.SlotRef) {
	s.keepVolumes(r, t.SeatAt(r))
	t.Drop(r, func(r facts.SlotRef, slot facts.Slot) {
		if slot.Deadline != 0 {
			s.deadlines.Delete(due{slot.Deadline, r})
		}
		s.count(t, -slot.Hash(r))
	})
	s.count(t, t.SetAttempts(r, retries.Attempts{}))
}

func (s *State) count(t *workload.Task, change uint64) {
	t.Digest += change
	s.digest += change
}

// SlotAt returns a seat of a slot; ok is false if there is no slot with that number, or nothing in a seat beside the
// main one.
func (s *State) SlotAt(r facts.SlotRef) (slot facts.Slot, ok bool) {
	j := s.Job(r.Job)
	if j == nil || int(r.Task) >= len(j.Tasks) || int(r.Index) >= j.Tasks[r.Task].Slots.Len() {
		return facts.Slot{}, false
	}
	slot = j.Tasks[r.Task].SeatAt(r)
	return slot, r.Seat == facts.MainSeat || slot != facts.Slot{}
}

// SeatOf returns the seat of a slot whose allocation has the given order; ok is false if none has, as with order 0. An
// empty seat may have kept the order of what went to another.
func (s *State) SeatOf(r facts.SlotRef, order terms.Index) (seat facts.SlotRef, slot facts.Slot, ok bool) {
	for r.Seat = facts.MainSeat; r.Seat < facts.SeatCount && order != 0; r.Seat++ {
		if one, there := s.SlotAt(r); there && one.Order == order && (!ok || slot.Empty()) {
			seat, slot, ok = r, one, true
		}
	}
	return seat, slot, ok
}

// OrderedNow tells whether an allocation of the slot was ordered with the present entry: no other seat of the slot may
// be ordered with it too, since order and slot name an allocation.
func (s *State) OrderedNow(r facts.SlotRef) bool {
	_, _, ok := s.SeatOf(r, s.Index)
	return ok
}

// EachSlot visits every seat of a task that ever had an allocation, main ones first, until visit returns false; visit
// must not change the task.
func (s *State) EachSlot(id terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	t := s.Job(id).Tasks[task]
	for index := range min(t.Fresh, uint32(t.Slots.Len())) {
		if !visit(facts.SlotRef{Job: id, Task: uint16(task), Index: index}, t.Slots.At(int(index))) {
			return
		}
	}
	t.EachSecondary(id, task, visit)
}

// NameOf returns the slot's name.
func (s *State) NameOf(r facts.SlotRef) terms.SlotName {
	j := s.Job(r.Job)
	return terms.SlotName{Job: j.Name(), Task: j.Tasks[r.Task].Name, Index: r.Index}
}

// RefOf returns the slot with the given name; ok is false if there is none.
func (s *State) RefOf(name terms.SlotName) (r facts.SlotRef, ok bool) {
	j := s.JobOf(name.Job)
	if j == nil {
		return facts.SlotRef{}, false
	}
	task := j.TaskIndex(name.Task)
	if task < 0 || int(name.Index) >= j.Tasks[task].Slots.Len() {
		return facts.SlotRef{}, false
	}
	return facts.SlotRef{Job: j.ID, Task: uint16(task), Index: name.Index}, true
}

// SetSlot replaces a seat and keeps all books; a zero Slot empties a seat beside the main one. A seat that goes from
// one node to another must have ended between.
func (s *State) SetSlot(r facts.SlotRef, next facts.Slot) {
	j := s.editJob(r.Job)
	t := s.editTask(j, int(r.Task))
	old := t.SeatAt(r)
	s.takeRoom(j, r, &old, &next)
	s.movePreemptible(j, r, &old, &next)
	s.putSlot(j, r, next)
	s.requeue(j, r, old.Phase, &next)
	if r.Index >= t.Desired && !next.Phase.Holds() {
		s.changeTask(r.Job, int(r.Task), func(t *workload.Task) { s.trim(t, facts.SlotRef{Job: r.Job, Task: r.Task}) })
		s.queue(j, int(r.Task)) // what was done and is dropped is no member of the gang any more
	}
}

// requeue puts a task back into the queue after a seat of it has changed.
func (s *State) requeue(j *workload.Job, r facts.SlotRef, old facts.Phase, next *facts.Slot) {
	t := s.editTask(j, int(r.Task))
	if old.Stays() && !next.Phase.Stays() && j.Spec.Within != "" {
		s.tryAnew(j.ID) // any other domain will do when that was the last in its own
	}
	if old == facts.Waiting || next.Phase == facts.Waiting {
		if next.Phase == facts.Waiting {
			t.Blocked, t.SpecialBlocked = t.Blocked && next.Special(), t.SpecialBlocked && !next.Special()
		}
		s.queue(j, int(r.Task))
	} else if j.HasGang() || j.Ordered() || t.Asked > 0 || t.Waits() > 0 || t.SpecialWaits() > 0 {
		s.queue(j, int(r.Task)) // what ended may let another run, or break a gang
	}
}

// takeRoom takes the room that a seat's next row holds, or gives back what the old one held.
func (s *State) takeRoom(j *workload.Job, r facts.SlotRef, old, next *facts.Slot) {
	switch {
	case old.Phase.Holds() && !next.Phase.Holds():
		spec := j.TaskSpecOf(int(r.Task), old.Version)
		s.release(j, spec, r, old.Node)
		s.charge(j, spec, -1)
	case !old.Phase.Holds() && next.Phase.Holds():
		spec := j.TaskSpecOf(int(r.Task), next.Version)
		s.hold(j, spec, r, next.Node)
		s.charge(j, spec, 1)
	case old.Phase.Holds():
		facts.Assert(old.Node == next.Node && old.Version == next.Version,
			"a slot changes its node and its version only after an end")
		if old.Phase >= facts.Stopping && next.Phase < facts.Stopping {
			s.DirtyNodes, s.PreemptionDirty = append(s.DirtyNodes, next.Node),
				true // what is within reach again, or does not end after all, may give way
		}
		// By when it has ended is known now, and what waits may pass others for that.
		s.PlacementDirty = s.PlacementDirty || next.Phase == facts.Running && s.waiting.Len() > 0 &&
			j.TaskSpecOf(int(r.Task), next.Version).MaxRunMillis > 0
	}
}

// MoveSeat moves what is in one seat of a slot to another, which must be empty or hold nothing.
func (s *State) MoveSeat(r facts.SlotRef, to facts.Seat) {
	j := s.editJob(r.Job)
	t, target := s.editTask(j, int(r.Task)), r
	target.Seat = to
	slot := t.SeatAt(r)
	if slot.Phase.Holds() {
		s.changeNode(slot.Node, func(row *Node) { row.rename(r, target) })
		s.notePreemptible(j, target, &slot)
	}
	last := t.SeatAt(target)
	if facts.Assert(to != r.Seat && !last.Phase.Holds(),
		"the seat to which something moves holds nothing"); slot.Order == 0 {
		slot.Order, slot.Node = last.Order, last.Node // the seat has had an allocation, although this one has none yet
	}
	left := facts.Slot{}
	if r.Seat == facts.MainSeat {
		left = facts.Slot{Order: slot.Order, Node: slot.Node, Phase: facts.Stopped}
	}
	s.putSlot(j, r, left)
	s.putSlot(j, target, slot)
	s.queue(j, int(r.Task))
}

// Assign gives a node to the lowest count slots of a task that wait for any node and the newest version, as ordered by
// the present entry, and visits them. There must be as many, and the node must have the room.
func (s *State) Assign(key facts.TaskKey, n facts.NodeIndex, count uint32, visit func(facts.SlotRef)) {
	id, task := key.Split()
	s.changeTask(id, task, func(t *workload.Task) {
		j := s.Job(id)
		spec := j.TaskSpecOf(task, j.Version)
		s.charge(j, spec, int64(count))
		for range count {
			index, ok := t.FirstReturned()
			if !ok {
				index = t.Fresh
				t.Fresh++
			}
			facts.Assert(index < t.Desired, "only slots that are wanted are given nodes")
			r := facts.SlotRef{Job: id, Task: uint16(task), Index: index}
			next := j.Place(s.Index, s.Time, t.Slots.At(int(index)), n)
			s.putSlot(j, r, next)
			s.hold(j, spec, r, n)
			s.notePreemptible(j, r, &next)
			if visit != nil {
				visit(r)
			}
		}
		if !j.HasGang() && spec.MaxRunning == 0 && t.Waits() > 0 {
			s.ask(j, t, t.AskFor(spec), t.AskedEach) // its turn stays as it is
		} else {
			s.queue(j, task)
		}
	})
}

// AssignSpecial gives a node to a seat that waits for a particular one, or for a particular version.
func (s *State) AssignSpecial(r facts.SlotRef, n facts.NodeIndex, visit func(facts.SlotRef)) {
	slot, _ := s.SlotAt(r)
	s.SetSlot(r, s.Job(r.Job).Place(s.Index, s.Time, slot, n))
	if visit != nil {
		visit(r)
	}
}

// putSlot replaces the row of a seat and counts it; room and the queue of placement are the caller's.
func (s *State) putSlot(j *workload.Job, r facts.SlotRef, next facts.Slot) {
	t := s.editTask(j, int(r.Task))
	old := t.SeatAt(r)
	s.count(t, next.Hash(r)-old.Hash(r))
	s.PlacementDirty = s.PlacementDirty || old.Phase != next.Phase && j.Spec.Shares() // what is over needs no virtual peer
	t.Put(j, r, &old, &next)
	if old.Node != next.Node || old.Order != next.Order || old.Phase.Final() != next.Phase.Final() ||
		old.Phase.Found() != next.Phase.Found() || old.Health != next.Health && j.IsTold(r, &old) != j.IsTold(r, &next) {
		s.markRosterDirty(j)
	}
	s.moveDeadline(r, old.Deadline, next.Deadline)
}

// moveDeadline replaces the deadline of a seat; 0 is none.
func (s *State) moveDeadline(r facts.SlotRef, old, next terms.Time) {
	if old == next {
		return
	}
	if old != 0 {
		s.deadlines.Delete(due{old, r})
	}
	if next != 0 {
		s.deadlines.Set(due{next, r})
	}
}

// SetAttempts replaces the slot's looks for another node; the newest are kept, as many as the limits allow.
func (s *State) SetAttempts(r facts.SlotRef, all retries.Attempts) {
	s.changeTask(r.Job, int(r.Task), func(t *workload.Task) {
		if all.Made > 0 {
			all = all.Keep(int(s.Limits.Attempts))
		}
		s.count(t, t.SetAttempts(r, all))
	})
}

// Volumes are the sets of volumes of which the value knows more than slots say.
func (s *State) Volumes() *volumes.Table { return &s.volumes }

// findVolumes lets slots from one on that were never placed wait for the nodes that have what earlier ones left.
func (s *State) findVolumes(t *workload.Task, r facts.SlotRef) {
	j := s.Job(r.Job)
	if s.Rules < rules.Volumes || !j.HasVolumes(int(r.Task)) {
		return
	}
	for _, set := range s.volumes.Found(s.NameOf(r), t.Desired, j.ID) {
		v, _ := s.volumes.Get(set)
		if r.Index = set.Slot.Index; t.Slots.At(int(r.Index)).Order != 0 || v.Empty {
			continue
		}
		v.User, v.Until = j.ID, 0
		s.volumes.Put(set, v)
		for t.Fresh <= r.Index {
			t.Fresh++
			s.putSlot(j, facts.SlotRef{Job: j.ID, Task: r.Task, Index: t.Fresh - 1}, facts.Slot{Since: s.Time})
		}
		s.putSlot(j, r, facts.Slot{Order: v.Order, Node: v.Node, Preference: facts.OnlyNode, Since: s.Time})
	}
}

// keepVolumes notes where the volumes of a slot are that no instance is to have any more. It returns true.
func (s *State) keepVolumes(r facts.SlotRef, slot facts.Slot) bool {
	j := s.Job(r.Job)
	if s.Rules < rules.Volumes || r.Seat != facts.MainSeat || !j.HasVolumes(int(r.Task)) {
		return true
	}
	kept := facts.Volumes{User: r.Job, Node: slot.Node, Order: slot.Order, Since: s.Time}
	s.volumes.Keep(s.NameOf(r), kept, j.KeepVolumes(int(r.Task)))
	return true
}
