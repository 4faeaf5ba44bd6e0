package workload

import "starling/cluster/facts"

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
		t.ownExtras().outdated.Insert(r.Index)
		if health != facts.Healthy && !j.MayLive(r, s) {
			t.extras.ill.Insert(r.Index)
		}
	case t.extras != nil:
		t.extras.outdated.Delete(r.Index)
		t.extras.ill.Delete(r.Index)
	}
}

// TallyFrom counts the main seats from one to before another, all below Desired, or no more.
func (t *Task) TallyFrom(j *Job, first, end facts.SlotRef, more bool) {
	fresh := end.Index - min(max(first.Index, t.Fresh), end.Index)
	if more {
		t.New[facts.Starting] += fresh
	} else {
		facts.Assert(t.New[facts.Starting] >= fresh, "seats that are counted no more were counted")
		t.New[facts.Starting] -= fresh
	}
	for end.Index -= fresh; first.Index < end.Index; first.Index++ {
		slot := t.Slots.At(int(first.Index))
		t.tally(j, first, &slot, more)
	}
}

// Recount counts the main seats of a task for updates anew.
func (t *Task) Recount(j *Job, task int) {
	t.New, t.Old = [facts.HealthCount]uint32{}, [facts.HealthCount]uint32{}
	if t.extras != nil && t.extras.outdated.Len() > 0 {
		t.extras.outdated.Clear()
		t.extras.ill.Clear()
	}
	t.TallyFrom(j, facts.SlotRef{Job: j.ID, Task: uint16(task)}, facts.SlotRef{Index: t.Desired}, true)
}

// Put replaces the row of a seat, and counts it.
func (t *Task) Put(j *Job, r facts.SlotRef, old, next *facts.Slot) {
	if r.Seat == facts.MainSeat {
		t.putMain(j, r, old, next)
	} else {
		t.putSecondary(r, next)
	}
	waited, waits := old.Phase == facts.Waiting && old.Special(), next.Phase == facts.Waiting && next.Special()
	switch {
	case waits && !waited && r.Index < t.Desired:
		t.ownExtras().special.Insert(facts.KeyOfSeat(r))
	case waited && !waits && t.extras != nil:
		t.extras.special.Delete(facts.KeyOfSeat(r))
	}
}

func (t *Task) putMain(j *Job, r facts.SlotRef, old, next *facts.Slot) {
	facts.Assert(t.Counts[old.Phase] > 0, "the phase of a slot was counted")
	t.Counts[old.Phase]--
	t.Counts[next.Phase]++
	t.Slots.Set(t.epoch, int(r.Index), *next)
	if r.Index < t.Desired {
		t.tally(j, r, old, false)
		t.tally(j, r, next, true)
	}
	waited, waits := old.Phase == facts.Waiting && !old.Special(), next.Phase == facts.Waiting && !next.Special()
	switch {
	case waits && r.Index < t.Fresh && r.Index < t.Desired:
		t.Return(r.Index)
	case waited && !waits && r.Index < t.Fresh && t.returned != nil:
		t.returned.Delete(r.Index)
	}
}

func (t *Task) putSecondary(r facts.SlotRef, next *facts.Slot) {
	old, secondary := t.SeatAt(r), t.ownExtras().secondary
	if old != (facts.Slot{}) {
		facts.Assert(t.Secondary[old.Phase] > 0, "the phase of a seat was counted")
		t.Secondary[old.Phase]--
		if r.Seat == facts.CanarySeat {
			t.Canaries[old.Trial()]--
		}
	}
	if *next == (facts.Slot{}) {
		secondary.Delete(facts.KeyOfSeat(r))
		return
	}
	secondary.Set(facts.KeyOfSeat(r), *next)
	t.Secondary[next.Phase]++
	if r.Seat == facts.CanarySeat {
		t.Canaries[next.Trial()]++
	}
}

// Drop forgets what is in the seats of a slot, none of which may hold room, and visits each with what it had.
func (t *Task) Drop(r facts.SlotRef, visit func(facts.SlotRef, facts.Slot)) {
	for r.Seat = facts.MainSeat; r.Seat < facts.SeatCount && (r.Seat == facts.MainSeat || t.extras != nil); r.Seat++ {
		slot := t.SeatAt(r)
		facts.Assert(!slot.Phase.Holds(), "a slot that is dropped holds nothing")
		visit(r, slot)
		if t.extras != nil {
			t.extras.special.Delete(facts.KeyOfSeat(r))
		}
		if r.Seat == facts.MainSeat {
			t.Counts[slot.Phase]--
		} else {
			t.putSecondary(r, &facts.Slot{})
		}
	}
}
