package workload

import (
	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/retries"
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

// seldom returns what few tasks have, for changing; the task must be of the present epoch.
func (t *Task) seldom() *rare {
	if t.rare == nil {
		t.rare = &rare{
			new(btree.Map[facts.SeatKey, facts.Slot]), new(btree.Set[facts.SeatKey]), new(btree.Set[uint32]),
			new(btree.Set[uint32]), new(btree.Map[uint32, retries.Attempts]),
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

// orNone returns what few tasks have, and none of it of a task without.
func (r *rare) orNone() *rare {
	if r != nil {
		return r
	}
	return &rare{special: new(btree.Set[facts.SeatKey]), outdated: new(btree.Set[uint32]), ill: new(btree.Set[uint32])}
}

// SeatAt returns a seat of the task, zero if it is empty.
func (t *Task) SeatAt(r facts.SlotRef) facts.Slot {
	if r.Seat == facts.MainSeat {
		return t.Slots.At(int(r.Index))
	}
	if t.rare == nil {
		return facts.Slot{}
	}
	slot, _ := t.rare.beside.Get(facts.KeyOfSeat(r))
	return slot
}

// EachSpecial visits the seats that wait for a particular node or version, lowest slot first, until visit returns
// false; visit must not change the task.
func (t *Task) EachSpecial(job terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	if t.rare == nil {
		return
	}
	t.rare.special.Scan(func(key facts.SeatKey) bool {
		r := key.In(job, task)
		return visit(r, t.SeatAt(r))
	})
}

// EachOutdated visits the slots that an update has to move, or those of them that are not well, from one on and then
// those before it, until visit returns false; visit must not change the task.
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

// HeldBeside tells whether a seat beside the main one of a slot holds room.
func (t *Task) HeldBeside(r facts.SlotRef) bool {
	for r.Seat = facts.MainSeat + 1; r.Seat < facts.SeatCount && t.rare != nil; r.Seat++ {
		if slot := t.SeatAt(r); slot.Phase.Holds() {
			return true
		}
	}
	return false
}

// Attempts returns the slot's looks for another node.
func (t *Task) Attempts(index uint32) (all retries.Attempts) {
	if t.rare != nil {
		all, _ = t.rare.attempts.Get(index)
	}
	return all
}

// SetAttempts replaces the slot's looks for another node, and returns what that changes of the digest.
func (t *Task) SetAttempts(r facts.SlotRef, all retries.Attempts) uint64 {
	old := t.Attempts(r.Index)
	switch {
	case all.Made > 0:
		t.seldom().attempts.Set(r.Index, all)
	case t.rare != nil:
		t.rare.attempts.Delete(r.Index)
	}
	return facts.AttemptsHash(r, all) - facts.AttemptsHash(r, old)
}

// CutSpecial takes one seat of the slots from one on out of those that wait for a particular node or version; ok is
// false if none is left.
func (t *Task) CutSpecial(from facts.SlotRef) (r facts.SlotRef, ok bool) {
	if t.SpecialWaits() == 0 {
		return r, false
	}
	key, _ := t.rare.special.GetAt(t.SpecialWaits() - 1)
	if r = key.In(from.Job, int(from.Task)); r.Index < from.Index {
		return r, false
	}
	t.rare.special.Delete(key)
	return r, true
}
