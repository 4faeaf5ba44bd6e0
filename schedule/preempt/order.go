package preempt

import (
	"cmp"
	"slices"
)

// value is how much an instance is worth: those that are worth least give way first.
type value struct {
	// rank is made of the class, the stage and the priority; a gang that breaks is worth more than anything else.
	rank uint64
	// age counts back from the start: what started last is worth least.
	age int64
}

const (
	stageShift        = 32
	entitled   uint64 = 1 << 62
	unbroken   uint64 = 1 << 63
)

func valueOf(v *Victim) value {
	worth := value{rank: uint64(v.Stage)<<stageShift | uint64(v.Priority), age: -int64(v.Since)}
	if !v.Revocable {
		worth.rank |= entitled
	}
	return worth
}

func (a *value) compare(b *value) int {
	switch {
	case a.rank < b.rank || a.rank == b.rank && a.age < b.age:
		return -1
	case *a == *b:
		return 0
	}
	return 1
}

// compareVictims orders victims as they give way; of equal ones the highest slot goes first.
func compareVictims(a, b *Victim) int {
	first, second := valueOf(a), valueOf(b)
	if c := first.compare(&second); c != 0 {
		return c
	}
	return b.Slot.Compare(a.Slot)
}

// sort puts victims into their order.
func (c *choice) sort(victims []int32) {
	slices.SortStableFunc(victims, func(a, b int32) int { return compareVictims(&c.in.Victims[a], &c.in.Victims[b]) })
}

// compareGangs orders gangs as they give way: as their most valuable members do, then the smaller one first.
func (c *choice) compareGangs(a, b int32) int {
	first, second := &c.gangs[a], &c.gangs[b]
	if worth := first.worth.compare(&second.worth); worth != 0 {
		return worth
	}
	if size := len(first.members) - len(second.members); size != 0 {
		return size
	}
	return cmp.Compare(c.in.Victims[second.members[0]].Slot.Job, c.in.Victims[first.members[0]].Slot.Job)
}
