// Package volumes keeps of sets of volumes what slots do not say: those that wait for their slot to come back, those
// that a slot has from an earlier job, and those that began anew.
package volumes

import (
	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/terms"
)

// row is a set, with what is kept of it.
type row = facts.Row[terms.VolumeSet, facts.Volumes]

// Table has the sets in the order of their slots, older ones of a slot first. A copy of it is made by Copy.
type Table struct {
	rows btree.BTreeG[row]
	// due has those that are kept for some time, the one whose time is over first at first.
	due btree.BTreeG[row]
	// Digest is the sum of the hashes of the rows.
	Digest uint64
	// Full is how many sets are not empty.
	Full int
}

// New returns an empty table.
func New() Table {
	return Table{rows: *btree.NewBTreeGOptions(func(a, b row) bool { return a.Key.Compare(b.Key) < 0 },
		btree.Options{NoLocks: true}),
		due: *btree.NewBTreeGOptions(func(a, b row) bool {
			return a.Value.Until < b.Value.Until || a.Value.Until == b.Value.Until && a.Key.Compare(b.Key) < 0
		}, btree.Options{NoLocks: true})}
}

// Copy returns a table that does not change with t.
func (t *Table) Copy() Table { return Table{*t.rows.Copy(), *t.due.Copy(), t.Digest, t.Full} }

// Len returns how many sets there are.
func (t *Table) Len() int { return t.rows.Len() }

// Rows lists them all.
func (t *Table) Rows() []facts.Row[terms.VolumeSet, facts.Volumes] { return t.rows.Items() }

// Get returns what is kept of a set; ok is false for nothing.
func (t *Table) Get(set terms.VolumeSet) (v facts.Volumes, ok bool) {
	one, ok := t.rows.Get(row{Key: set})
	return one.Value, ok
}

// Put keeps a set.
func (t *Table) Put(set terms.VolumeSet, v facts.Volumes) {
	t.Delete(set)
	t.rows.Set(row{Key: set, Value: v})
	t.Digest += v.Hash(set)
	if !v.Empty {
		t.Full++
	}
	if v.Until != 0 {
		t.due.Set(row{Key: set, Value: v})
	}
}

// Due returns the set whose time is over first, and when that is; ok is false if all are kept until they are removed.
func (t *Table) Due() (set terms.VolumeSet, at terms.Time, ok bool) {
	first, ok := t.due.Min()
	return first.Key, first.Value.Until, ok
}

// Delete forgets a set.
func (t *Table) Delete(set terms.VolumeSet) {
	if old, ok := t.rows.Delete(row{Key: set}); ok {
		t.Digest -= old.Value.Hash(set)
		if !old.Value.Empty {
			t.Full--
		}
		t.due.Delete(old)
	}
}

// Each visits the sets of a job, or of the task of it that is named, until visit returns false; visit must not change
// the table.
func (t *Table) Each(job terms.JobName, task terms.TaskName, visit func(terms.VolumeSet, facts.Volumes) bool) {
	from := terms.VolumeSet{Slot: terms.SlotName{Job: job, Task: task}}
	t.rows.Ascend(row{Key: from}, func(one row) bool {
		slot := one.Key.Slot
		return slot.Job == job && (task == "" || slot.Task == task) && visit(one.Key, one.Value)
	})
}

// Of returns the set of which a slot of a job has its volumes, and what is kept of it: its own, of which nothing is,
// unless it has found or begun others.
func (t *Table) Of(slot terms.SlotName, job terms.JobID) (set terms.VolumeSet, v facts.Volumes, kept bool) {
	set = terms.VolumeSet{Slot: slot, Job: job}
	t.rows.Ascend(row{Key: terms.VolumeSet{Slot: slot}}, func(one row) bool {
		if kept = one.Key.Slot == slot && one.Value.User == job; kept {
			set, v = one.Key, one.Value
		}
		return !kept && one.Key.Slot == slot
	})
	return set, v, kept
}

// Found returns for each slot of a task of a job which set it has or finds, from a number on and below another: what it
// had before, or else the newest that no job has.
func (t *Table) Found(task terms.SlotName, below uint32, job terms.JobID) (all []terms.VolumeSet) {
	found := facts.Volumes{}
	t.Each(task.Job, task.Task, func(set terms.VolumeSet, v facts.Volumes) bool {
		last := len(all) - 1
		switch {
		case set.Slot.Index < task.Index || v.User != job && v.User != 0:
		case last < 0 || all[last].Slot != set.Slot:
			all, found = append(all, set), v
		case found.User != job:
			all[last], found = set, v
		}
		return set.Slot.Index < below
	})
	for len(all) > 0 && all[len(all)-1].Slot.Index >= below {
		all = all[:len(all)-1]
	}
	return all
}

// Keep notes what is known of the volumes of a slot that no instance is to have any more, if it has had any; they are
// kept for so long, or with 0 until somebody removes them.
func (t *Table) Keep(slot terms.SlotName, now facts.Volumes, long terms.Time) {
	set, v, kept := t.Of(slot, now.User)
	if long > 0 {
		now.Until = now.Since + long
	}
	switch {
	case now.Order > v.Order || v.Empty && now.Order == v.Order:
		t.Put(set, now)
	case kept && !v.Empty && v.Until == 0 && now.Until != 0:
		v.Until = now.Until
		t.Put(set, v)
	}
}

// Leave leaves what a job had to the next of its name.
func (t *Table) Leave(name terms.JobName, job terms.JobID, now terms.Time) {
	var own []row
	t.Each(name, "", func(set terms.VolumeSet, v facts.Volumes) bool {
		if v.User == job {
			own = append(own, row{Key: set, Value: v})
		}
		return true
	})
	for _, one := range own {
		if t.Delete(one.Key); !one.Value.Empty {
			one.Value.User, one.Value.Since = 0, now
			t.Put(one.Key, one.Value)
		}
	}
}

// Renew lets a slot of a job have a set of a number that no job has, instead of what it had.
func (t *Table) Renew(slot terms.SlotName, job, number terms.JobID, v facts.Volumes) {
	old, _, _ := t.Of(slot, job)
	t.Delete(old)
	t.Put(terms.VolumeSet{Slot: slot, Job: number}, v)
}
