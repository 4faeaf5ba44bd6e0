package cluster

import (
	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/cluster/vector"
	"starling/terms"
)

// rare is what only a few slots of a few tasks have.
type rare struct {
	// beside holds the seats that are not main ones.
	beside *btree.Map[facts.SeatKey, facts.Slot]
	// special are the seats that wait for a particular node or version.
	special *btree.Set[facts.SeatKey]
	// outdated are the main seats below Desired that an update has to move: those that Task.Old counts.
	outdated *btree.Set[uint32]
	// ill are those of them that are not well, but for those whose place nothing may take yet.
	ill *btree.Set[uint32]
	// attempts are the looks for another node that slots took after failures.
	attempts *btree.Map[uint32, retries.Attempts]
}

func newTask(e *vector.Edition, name terms.TaskName) *Task {
	return &Task{edition: e, Task: facts.Task{Name: name}, returned: new(btree.Set[uint32]), nameHash: facts.NameHash(name)}
}

// seldom returns what few tasks have, for changing; the task must be of the present edition.
func (t *Task) seldom() *rare {
	if t.rare == nil {
		t.rare = &rare{
			new(btree.Map[facts.SeatKey, facts.Slot]), new(btree.Set[facts.SeatKey]), new(btree.Set[uint32]), new(btree.Set[uint32]),
			new(btree.Map[uint32, retries.Attempts]),
		}
	}
	return t.rare
}

// copy returns a copy that shares rows. Each Copy marks what it copies, and others may be reading: so it copies copies.
func (r *rare) copy() *rare {
	if r == nil {
		return nil
	}
	beside, special, outdated, ill, attempts := *r.beside, *r.special, *r.outdated, *r.ill, *r.attempts
	return &rare{beside.Copy(), special.Copy(), outdated.Copy(), ill.Copy(), attempts.Copy()}
}

// SpecialWaits returns how many seats of the task wait for a particular node or version.
func (t *Task) SpecialWaits() int {
	if t.rare == nil {
		return 0
	}
	return t.rare.special.Len()
}

// EachSpecial visits the seats that wait for a particular node or version, lowest slot first, until visit returns false;
// visit must not change the task.
func (t *Task) EachSpecial(job terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	if t.rare == nil {
		return
	}
	t.rare.special.Scan(func(key facts.SeatKey) bool {
		r := key.In(job, task)
		return visit(r, t.seat(r))
	})
}

// EachOutdated visits the slots that an update has to move, or those of them that are not well, from one on and then those before it, until
// visit returns false; visit must not change the task.
func (t *Task) EachOutdated(ill bool, from uint32, visit func(index uint32) bool) {
	if t.rare == nil {
		return
	}
	set, goesOn := t.rare.outdated, true
	if ill {
		set = t.rare.ill
	}
	set.Ascend(from, func(index uint32) bool { goesOn = visit(index); return goesOn })
	if goesOn {
		set.Scan(func(index uint32) bool { return index < from && visit(index) })
	}
}

// EachBeside visits the seats that are not main ones, lowest slot first, until visit returns false; visit must not
// change the task.
func (t *Task) EachBeside(job terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	if t.rare != nil {
		t.rare.beside.Scan(func(key facts.SeatKey, slot facts.Slot) bool { return visit(key.In(job, task), slot) })
	}
}

// Attempts returns the slot's looks for another node.
func (t *Task) Attempts(index uint32) (all retries.Attempts) {
	if t.rare != nil {
		all, _ = t.rare.attempts.Get(index)
	}
	return all
}

// SetAttempts replaces the slot's looks for another node; the newest are kept, as many as the limits allow.
func (s *State) SetAttempts(r facts.SlotRef, all retries.Attempts) {
	s.changeTask(r.Job, int(r.Task), func(t *Task) {
		if all.Made == 0 && t.rare == nil {
			return
		}
		s.count(t, -facts.AttemptsHash(r, t.Attempts(r.Index)))
		if all = all.Keep(int(s.Limits.Attempts)); all.Made == 0 {
			t.seldom().attempts.Delete(r.Index)
		} else {
			t.seldom().attempts.Set(r.Index, all)
		}
		s.count(t, facts.AttemptsHash(r, all))
	})
}

// seat returns a seat of the task, zero if it is empty.
func (t *Task) seat(r facts.SlotRef) facts.Slot {
	if r.Seat == facts.MainSeat {
		return t.Slots.At(int(r.Index))
	}
	if t.rare == nil {
		return facts.Slot{}
	}
	slot, _ := t.rare.beside.Get(facts.KeyOfSeat(r))
	return slot
}

// Live returns how many seats of the task hold room.
func (t *Task) Live() uint32 {
	count := uint32(0)
	for phase := facts.Assigned; phase <= facts.Away; phase++ {
		count += t.Counts[phase] + t.Beside[phase]
	}
	return count
}

// Pending returns how many seats of the task want an allocation that they do not have.
func (t *Task) Pending() uint32 {
	return t.Waits() + uint32(t.SpecialWaits()) + t.Counts[facts.Postponed] + t.Beside[facts.Postponed]
}
