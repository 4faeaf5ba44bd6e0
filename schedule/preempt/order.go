package preempt

import (
	"cmp"
	"slices"
)

// value is how much an instance is worth: those that are worth least give way first.
type value struct {
	// breaks is 1 for a gang that breaks, which is worth more than anything else.
	breaks, claim uint8
	stage         Stage
	priority      uint32
	// age counts back from the start: who started last is worth least.
	age int64
}

func valueOf(v *Victim) value {
	worth := value{stage: v.Stage, priority: v.Priority, age: -int64(v.Since)}
	if !v.Revocable {
		worth.claim = 1
	}
	return worth
}

func (a value) compare(b value) int {
	switch {
	case a.breaks != b.breaks:
		return cmp.Compare(a.breaks, b.breaks)
	case a.claim != b.claim:
		return cmp.Compare(a.claim, b.claim)
	case a.stage != b.stage:
		return cmp.Compare(a.stage, b.stage)
	case a.priority != b.priority:
		return cmp.Compare(a.priority, b.priority)
	}
	return cmp.Compare(a.age, b.age)
}

// compareVictims orders victims as they give way; of equal ones the highest slot goes first.
func compareVictims(a, b *Victim) int {
	if c := valueOf(a).compare(valueOf(b)); c != 0 {
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
	if worth := first.worth.compare(second.worth); worth != 0 {
		return worth
	}
	if size := len(first.members) - len(second.members); size != 0 {
		return size
	}
	return cmp.Compare(c.in.Victims[second.members[0]].Slot.Job, c.in.Victims[first.members[0]].Slot.Job)
}
