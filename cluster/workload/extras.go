package workload

import (
	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/terms"
)

// extras are what only a few slots of a few tasks have.
type extras struct {
	// secondary holds the seats that are not main ones.
	secondary *btree.Map[facts.SeatKey, facts.Slot]
	// special are the seats that wait for a particular node or version.
	special *btree.Set[facts.SeatKey]
	// outdated are the main seats below Desired that an update has to move: those that Task.Old counts.
	outdated *btree.Set[uint32]
	// ill are those of them that are not well, but for those whose place nothing may take yet.
	ill *btree.Set[uint32]
	// attempts are the looks for another node that slots took after failures.
	attempts *btree.Map[uint32, retries.Attempts]
}

// ownExtras returns what few tasks have, for changing; the task must be of the present epoch.
func (t *Task) ownExtras() *extras {
	if t.extras == nil {
		t.extras = &extras{
			new(btree.Map[facts.SeatKey, facts.Slot]), new(btree.Set[facts.SeatKey]), new(btree.Set[uint32]),
			new(btree.Set[uint32]), new(btree.Map[uint32, retries.Attempts]),
		}
	}
	return t.extras
}

// copy returns a copy that shares rows. Each Copy marks what it copies, and others may be reading: so it copies copies.
func (r *extras) copy() *extras {
	if r == nil {
		return nil
	}
	secondary, special, outdated, ill, attempts := *r.secondary, *r.special, *r.outdated, *r.ill, *r.attempts
	return &extras{secondary.Copy(), special.Copy(), outdated.Copy(), ill.Copy(), attempts.Copy()}
}

// orNone returns what few tasks have, and none of it of a task without.
func (r *extras) orNone() *extras {
	if r != nil {
		return r
	}
	return &extras{special: new(btree.Set[facts.SeatKey]), outdated: new(btree.Set[uint32]), ill: new(btree.Set[uint32])}
}

// SeatAt returns a seat of the task, zero if it is empty.
func (t *Task) SeatAt(r facts.SlotRef) facts.Slot {
	if r.Seat == facts.MainSeat {
		return t.Slots.At(int(r.Index))
	}
	if t.extras == nil {
		return facts.Slot{}
	}
	slot, _ := t.extras.secondary.Get(facts.KeyOfSeat(r))
	return slot
}

// EachSpecial visits the seats that wait for a particular node or version, lowest slot first, until visit returns
// false; visit must not change the task.
func (t *Task) EachSpecial(job terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	if t.extras == nil {
		return
	}
	t.extras.special.Scan(func(key facts.SeatKey) bool {
		r := key.In(job, task)
		return visit(r, t.SeatAt(r))
	})
}

// EachOutdated visits the slots that an update has to move, or those of them that are not well, from one on and then
// those before it, until visit returns false; visit must not change the task.
func (t *Task) EachOutdated(ill bool, from uint32, visit func(index uint32) bool) {
	if t.extras == nil {
		return
	}
	set, goesOn := t.extras.outdated, true
	if ill {
		set = t.extras.ill
	}
	set.Ascend(from, func(index uint32) bool { goesOn = visit(index); return goesOn })
	if goesOn {
		set.Scan(func(index uint32) bool { return index < from && visit(index) })
	}
}

// EachSecondary visits the seats that are not main ones, lowest slot first, until visit returns false; visit must not
// change the task.
func (t *Task) EachSecondary(job terms.JobID, task int, visit func(facts.SlotRef, facts.Slot) bool) {
	if t.extras != nil {
		t.extras.secondary.Scan(func(key facts.SeatKey, slot facts.Slot) bool { return visit(key.In(job, task), slot) })
	}
}

// SecondaryHeld tells whether a seat beside the main one of a slot holds room.
func (t *Task) SecondaryHeld(r facts.SlotRef) bool {
	for r.Seat = facts.MainSeat + 1; r.Seat < facts.SeatCount && t.extras != nil; r.Seat++ {
		if slot := t.SeatAt(r); slot.Phase.Holds() {
			return true
		}
	}
	return false
}

// Attempts returns the slot's looks for another node.
func (t *Task) Attempts(index uint32) (all retries.Attempts) {
	if t.extras != nil {
		all, _ = t.extras.attempts.Get(index)
	}
	return all
}

// SetAttempts replaces the slot's looks for another node, and returns what that changes of the digest.
func (t *Task) SetAttempts(r facts.SlotRef, all retries.Attempts) uint64 {
	old := t.Attempts(r.Index)
	switch {
	case all.Made > 0:
		t.ownExtras().attempts.Set(r.Index, all)
	case t.extras != nil:
		t.extras.attempts.Delete(r.Index)
	}
	return facts.AttemptsHash(r, all) - facts.AttemptsHash(r, old)
}

// CutSpecial takes one seat of the slots from one on out of those that wait for a particular node or version; ok is
// false if none is left.
func (t *Task) CutSpecial(from facts.SlotRef) (r facts.SlotRef, ok bool) {
	if t.SpecialWaits() == 0 {
		return r, false
	}
	key, _ := t.extras.special.GetAt(t.SpecialWaits() - 1)
	if r = key.In(from.Job, int(from.Task)); r.Index < from.Index {
		return r, false
	}
	t.extras.special.Delete(key)
	return r, true
}
