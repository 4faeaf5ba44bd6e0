package cluster

import "starling/terms"

// special tells whether a waiting slot wants a particular node or version.
func (s *Slot) special() bool { return s.Version != 0 || s.Wish != AnyNode }

// Standing returns how a main seat counts for an update: whether it has the newest version or is on its way to it, and its
// health.
func (j *Job) Standing(s *Slot) (newest bool, health Health) {
	switch {
	case s.Phase == Succeeded || s.Phase == Stopped:
		return true, Healthy
	case s.Phase == Stopping && s.Cause == ByUpdate:
		return true, Untried
	case s.Phase == Running || s.Health == Unhealthy:
		health = s.Health
	}
	return s.Version == 0 || s.Version == j.Version, health
}

// tally counts a main seat below Desired, or no more.
func (t *Task) tally(j *Job, r SlotRef, s *Slot, more bool) {
	newest, health := j.Standing(s)
	counts := &t.Old
	if newest {
		counts = &t.New
	}
	if more {
		counts[health]++
	} else {
		counts[health]--
	}
	switch {
	case newest:
	case more:
		t.seldom().outdated.Insert(r.Index)
		if health != Healthy && !j.MayLive(r, s) {
			t.rare.ill.Insert(r.Index)
		}
	case t.rare != nil:
		t.rare.outdated.Delete(r.Index)
		t.rare.ill.Delete(r.Index)
	}
}

// MayLive tells whether nothing may take the place of a seat's allocation before it has certainly stopped itself.
func (j *Job) MayLive(r SlotRef, s *Slot) bool {
	return s.Phase == Away && j.TaskSpecOf(int(r.Task), s.Version).StopsItself()
}

// tallyFrom counts the main seats from one to before another, all below Desired, or no more.
func (t *Task) tallyFrom(j *Job, first, end SlotRef, more bool) {
	fresh := end.Index - min(max(first.Index, t.Fresh), end.Index)
	if more {
		t.New[Untried] += fresh
	} else {
		assert(t.New[Untried] >= fresh, "seats that are counted no more were counted")
		t.New[Untried] -= fresh
	}
	for end.Index -= fresh; first.Index < end.Index; first.Index++ {
		slot := t.Slots.At(int(first.Index))
		t.tally(j, first, &slot, more)
	}
}

// recount counts the main seats of a task for updates anew.
func (s *State) recount(j *Job, task int) {
	t := s.editTask(s.editJob(j.ID), task)
	t.New, t.Old = [HealthCount]uint32{}, [HealthCount]uint32{}
	if t.rare != nil && t.rare.outdated.Len() > 0 {
		t.rare.outdated.Clear()
		t.rare.ill.Clear()
	}
	t.tallyFrom(j, SlotRef{Job: j.ID, Task: uint16(task)}, SlotRef{Index: t.Desired}, true)
}

// trial returns how a canary counts.
func (s *Slot) trial() Health {
	if s.Phase == Running || s.Health == Unhealthy && s.Phase != Stopping {
		return s.Health
	}
	return Untried
}

// putSlot replaces the row of a seat and counts it; room and the queue of placement are the caller's.
func (s *State) putSlot(j *Job, r SlotRef, next Slot) {
	t := s.editTask(j, int(r.Task))
	old := t.seat(r)
	s.count(t, next.hash(r)-old.hash(r))
	s.stirShares(j, old.Phase, next.Phase)
	if r.Seat == MainSeat {
		s.putMain(j, t, r, &next)
	} else {
		t.putBeside(r, &next)
	}
	if old.Node != next.Node || old.Order != next.Order || old.Phase.Final() != next.Phase.Final() || old.Phase.Found() != next.Phase.Found() {
		s.regroup(j)
	}
	s.moveDeadline(r, old.Deadline, next.Deadline)
	waited, waits := old.Phase == Waiting && old.special(), next.Phase == Waiting && next.special()
	switch {
	case waits && !waited && r.Index < t.Desired:
		t.seldom().special.Insert(keyOfSeat(r))
	case waited && !waits && t.rare != nil:
		t.rare.special.Delete(keyOfSeat(r))
	}
}

// moveDeadline replaces the deadline of a seat; 0 is none.
func (s *State) moveDeadline(r SlotRef, old, next terms.Time) {
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

func (s *State) putMain(j *Job, t *Task, r SlotRef, next *Slot) {
	old := t.Slots.At(int(r.Index))
	assert(t.Counts[old.Phase] > 0, "the phase of a slot was counted")
	t.Counts[old.Phase]--
	t.Counts[next.Phase]++
	t.Slots.Set(s.edition, int(r.Index), *next)
	if r.Index < t.Desired {
		t.tally(j, r, &old, false)
		t.tally(j, r, next, true)
	}
	waited, waits := old.Phase == Waiting && !old.special(), next.Phase == Waiting && !next.special()
	switch {
	case waits && r.Index < t.Fresh && r.Index < t.Desired:
		t.returned.Insert(r.Index)
	case waited && !waits && r.Index < t.Fresh:
		t.returned.Delete(r.Index)
	}
}

func (t *Task) putBeside(r SlotRef, next *Slot) {
	old, beside := t.seat(r), t.seldom().beside
	if old != (Slot{}) {
		assert(t.Beside[old.Phase] > 0, "the phase of a seat was counted")
		t.Beside[old.Phase]--
		if r.Seat == CanarySeat {
			t.Canaries[old.trial()]--
		}
	}
	if *next == (Slot{}) {
		beside.Delete(keyOfSeat(r))
		return
	}
	beside.Set(keyOfSeat(r), *next)
	t.Beside[next.Phase]++
	if r.Seat == CanarySeat {
		t.Canaries[next.trial()]++
	}
}
