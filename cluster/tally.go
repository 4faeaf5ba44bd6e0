package cluster

import (
	"starling/cluster/facts"
	"starling/terms"
)

// tally counts a main seat below Desired, or no more.
func (t *Task) tally(j *Job, r facts.SlotRef, s *facts.Slot, more bool) {
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
		if health != facts.Healthy && !j.MayLive(r, s) {
			t.rare.ill.Insert(r.Index)
		}
	case t.rare != nil:
		t.rare.outdated.Delete(r.Index)
		t.rare.ill.Delete(r.Index)
	}
}

// MayLive tells whether nothing may take the place of a seat's allocation before it has certainly stopped itself.
func (j *Job) MayLive(r facts.SlotRef, s *facts.Slot) bool {
	return s.Phase == facts.Away && j.TaskSpecOf(int(r.Task), s.Version).StopsItself()
}

// tallyFrom counts the main seats from one to before another, all below Desired, or no more.
func (t *Task) tallyFrom(j *Job, first, end facts.SlotRef, more bool) {
	fresh := end.Index - min(max(first.Index, t.Fresh), end.Index)
	if more {
		t.New[facts.Untried] += fresh
	} else {
		assert(t.New[facts.Untried] >= fresh, "seats that are counted no more were counted")
		t.New[facts.Untried] -= fresh
	}
	for end.Index -= fresh; first.Index < end.Index; first.Index++ {
		slot := t.Slots.At(int(first.Index))
		t.tally(j, first, &slot, more)
	}
}

// recount counts the main seats of a task for updates anew.
func (s *State) recount(j *Job, task int) {
	t := s.editTask(s.editJob(j.ID), task)
	t.New, t.Old = [facts.HealthCount]uint32{}, [facts.HealthCount]uint32{}
	if t.rare != nil && t.rare.outdated.Len() > 0 {
		t.rare.outdated.Clear()
		t.rare.ill.Clear()
	}
	t.tallyFrom(j, facts.SlotRef{Job: j.ID, Task: uint16(task)}, facts.SlotRef{Index: t.Desired}, true)
}

// putSlot replaces the row of a seat and counts it; room and the queue of placement are the caller's.
func (s *State) putSlot(j *Job, r facts.SlotRef, next facts.Slot) {
	t := s.editTask(j, int(r.Task))
	old := t.seat(r)
	s.count(t, next.Hash(r)-old.Hash(r))
	s.stirShares(j, old.Phase, next.Phase)
	if r.Seat == facts.MainSeat {
		s.putMain(j, t, r, &next)
	} else {
		t.putBeside(r, &next)
	}
	if old.Node != next.Node || old.Order != next.Order || old.Phase.Final() != next.Phase.Final() || old.Phase.Found() != next.Phase.Found() {
		s.regroup(j)
	}
	s.moveDeadline(r, old.Deadline, next.Deadline)
	waited, waits := old.Phase == facts.Waiting && old.Special(), next.Phase == facts.Waiting && next.Special()
	switch {
	case waits && !waited && r.Index < t.Desired:
		t.seldom().special.Insert(facts.KeyOfSeat(r))
	case waited && !waits && t.rare != nil:
		t.rare.special.Delete(facts.KeyOfSeat(r))
	}
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

func (s *State) putMain(j *Job, t *Task, r facts.SlotRef, next *facts.Slot) {
	old := t.Slots.At(int(r.Index))
	assert(t.Counts[old.Phase] > 0, "the phase of a slot was counted")
	t.Counts[old.Phase]--
	t.Counts[next.Phase]++
	t.Slots.Set(s.edition, int(r.Index), *next)
	if r.Index < t.Desired {
		t.tally(j, r, &old, false)
		t.tally(j, r, next, true)
	}
	waited, waits := old.Phase == facts.Waiting && !old.Special(), next.Phase == facts.Waiting && !next.Special()
	switch {
	case waits && r.Index < t.Fresh && r.Index < t.Desired:
		t.returned.Insert(r.Index)
	case waited && !waits && r.Index < t.Fresh:
		t.returned.Delete(r.Index)
	}
}

func (t *Task) putBeside(r facts.SlotRef, next *facts.Slot) {
	old, beside := t.seat(r), t.seldom().beside
	if old != (facts.Slot{}) {
		assert(t.Beside[old.Phase] > 0, "the phase of a seat was counted")
		t.Beside[old.Phase]--
		if r.Seat == facts.CanarySeat {
			t.Canaries[old.Trial()]--
		}
	}
	if *next == (facts.Slot{}) {
		beside.Delete(facts.KeyOfSeat(r))
		return
	}
	beside.Set(facts.KeyOfSeat(r), *next)
	t.Beside[next.Phase]++
	if r.Seat == facts.CanarySeat {
		t.Canaries[next.Trial()]++
	}
}
