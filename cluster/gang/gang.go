// Package gang counts what a job has and lacks of the instances that must run together.
//
// A gang is a number of instances of each task, its least, and a number of any instances beyond those.
package gang

import (
	"slices"

	"starling/terms"
)

// State is how a gang stands. A job without one has it whole.
type State uint8

// The states of a gang.
const (
	// Whole: as many run as must run together, but for members by which it has grown since it was admitted.
	Whole State = iota
	// Broken: it ran, and lost members.
	Broken
	// Growing: it runs and lacks members by which it has grown, which are admitted together.
	Growing
	// Absent: nothing of it runs. It is admitted whole.
	Absent
)

// Task is how a task stands for the gang.
type Task struct {
	// Least is how many of its own instances are members at least.
	Least uint32
	// Living instances run or are about to, Done ones have succeeded. Fresh ones never had a node.
	Living, Done, Fresh uint32
}

// Missing returns how many of its least the task lacks.
func (t *Task) Missing() uint32 { return t.Least - min(t.Least, t.Living+t.Done) }

// Count sums up the tasks of a gang. The zero Count is of none.
type Count struct {
	// missing members are those of the tasks, lost ones are no fresh ones. Spare instances are beyond the least.
	missing, lost, living, spare, fresh uint32
}

// Add counts a task.
func (c *Count) Add(t *Task) {
	missing := t.Missing()
	first := min(missing, t.Fresh)
	c.missing += missing
	c.lost += missing - first
	c.fresh += t.Fresh - first
	c.living += t.Living
	c.spare += t.Living + t.Done - min(t.Least, t.Living+t.Done)
}

// Any returns how many are missing of those that may be of any task.
func (c *Count) Any(beyond uint32) uint32 { return beyond - min(beyond, c.spare) }

// LostAny returns how many of those are lost: so many are missing, and were not to come for the first time.
func (c *Count) LostAny(beyond uint32) uint32 { return c.Any(beyond) - min(c.Any(beyond), c.fresh) }

// State returns how the gang stands that has so many members beyond the least of its tasks; together tells that those
// by which it grows are admitted together.
func (c *Count) State(beyond uint32, together bool) State {
	missing, lost := c.missing+c.Any(beyond), c.lost+c.LostAny(beyond)
	switch {
	case missing == 0:
		return Whole
	case c.living == 0:
		return Absent
	case lost > 0:
		return Broken
	case together:
		return Growing
	}
	return Whole
}

// Option is a task of which any number up to Most may be members, each of which takes so much.
type Option struct {
	Each terms.Amounts
	Most uint32
}

// Least returns a lower bound of what so many instances of any of the tasks take together. Of tasks that take the same
// it is what they take.
func Least(count uint32, options []Option) (sum terms.Amounts) {
	for k := range sum {
		slices.SortStableFunc(options, func(a, b Option) int {
			switch {
			case a.Each[k] < b.Each[k]:
				return -1
			case a.Each[k] > b.Each[k]:
				return 1
			}
			return 0
		})
		left := count
		for i := range options {
			some := min(left, options[i].Most)
			sum[k] = min(sum[k]+options[i].Each[k]*int64(some), terms.Unlimited)
			left -= some
		}
	}
	return sum
}

// Surplus returns, by task, how many living instances may go before the gang has too few. Of what is beyond the least
// of the tasks, members are those of the first tasks.
func Surplus(beyond uint32, tasks []Task) []uint32 {
	surplus := make([]uint32, len(tasks))
	for i, t := range tasks {
		needed := min(t.Least, t.Living+t.Done)
		more := min(beyond, t.Living+t.Done-needed)
		beyond, needed = beyond-more, needed+more
		surplus[i] = t.Living - min(t.Living, needed-min(needed, t.Done))
	}
	return surplus
}
