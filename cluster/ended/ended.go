// Package ended lists the jobs that have ended and are kept, and says which is forgotten first when they are too many.
package ended

import (
	"cmp"

	"github.com/tidwall/btree"

	"starling/cluster/tree"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/rules"
)

// Job is a job that has ended.
type Job struct {
	// At is the entry with which it ended.
	At terms.Index
	ID terms.JobID
	// Pool is the account of its pool. Kept tells that it says for how long it is kept.
	Pool tree.ID
	Kept bool
	// Slots and Specs are what is kept of it.
	Slots uint32
	Specs workload.Specs
}

// Of returns a job as one that has ended.
func Of(j *workload.Job) Job {
	return Job{At: j.Finished, ID: j.ID, Pool: j.Pool, Kept: j.Spec.KeepMillis > 0, Slots: j.SlotCount(), Specs: j.Specs()}
}

// before orders the jobs of a pool as they are forgotten: those first that say nothing, then those that ended first.
func before(a, b *Job) int {
	kept := func(j *Job) int {
		if j.Kept {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(kept(a), kept(b)), cmp.Compare(a.At, b.At),
		cmp.Compare(a.ID, b.ID))
}

func (j *Job) endedBefore(other *Job) bool {
	return cmp.Or(cmp.Compare(j.At, other.At), cmp.Compare(j.ID, other.ID)) < 0
}

// Sums are how many jobs there are, and what is kept of them.
type Sums struct {
	Jobs, Slots uint32
	Specs       workload.Specs
}

func (s *Sums) add(j *Job, times int64) {
	s.Jobs += uint32(times)
	s.Slots += j.Slots * uint32(times)
	s.Specs.Add(j.Specs, times)
}

// Table is the list.
type Table struct {
	jobs  btree.BTreeG[Job]
	pools btree.Map[tree.ID, Sums]
	all   Sums
}

// New returns an empty table.
func New() Table {
	return Table{jobs: *btree.NewBTreeGOptions(func(a, b Job) bool { return before(&a, &b) < 0 },
		btree.Options{NoLocks: true})}
}

// Copy returns a copy in constant time; like that of a tree, it marks the table.
func (t *Table) Copy() Table { return Table{*t.jobs.Copy(), *t.pools.Copy(), t.all} }

// Sums returns how many there are.
func (t *Table) Sums() Sums { return t.all }

// Items lists all, pool by pool.
func (t *Table) Items() []Job { return t.jobs.Items() }

// Add puts a job in.
func (t *Table) Add(j Job) {
	t.jobs.Set(j)
	t.count(&j, 1)
}

// Delete takes a job out.
func (t *Table) Delete(j Job) {
	t.jobs.Delete(j)
	t.count(&j, -1)
}

func (t *Table) count(j *Job, times int64) {
	t.all.add(j, times)
	sums, _ := t.pools.Get(j.Pool)
	if sums.add(j, times); sums.Jobs == 0 {
		t.pools.Delete(j.Pool)
	} else {
		t.pools.Set(j.Pool, sums)
	}
}

// Excess returns the job that is forgotten next; ok is false if there are not too many.
func (t *Table) Excess(l *terms.Limits, in rules.Number) (next Job, ok bool) {
	bytes := func(s *Sums) int64 { return s.Specs.Bytes }
	for _, bound := range [...]struct {
		most    int64
		measure func(*Sums) int64
		least   uint32
		since   rules.Number
	}{
		{int64(l.FinishedJobs), func(s *Sums) int64 { return int64(s.Jobs) }, 0, rules.First},
		{int64(l.FinishedSlots), func(s *Sums) int64 { return int64(s.Slots) }, 1, rules.First},
		{terms.SpecBytesDefault, bytes, 1, rules.Volumes},
	} {
		switch {
		case in < bound.since || t.all.Jobs <= bound.least || bound.measure(&t.all) <= bound.most:
		case in < rules.PoolsForget:
			return t.oldest(), true
		default:
			return t.first(bound.measure), true
		}
	}
	return next, false
}

// oldest returns the job that ended first, of all.
func (t *Table) oldest() (oldest Job) {
	t.pools.Scan(func(id tree.ID, _ Sums) bool {
		for _, kept := range [...]bool{false, true} {
			t.jobs.Ascend(Job{Pool: id, Kept: kept}, func(j Job) bool {
				if j.Pool == id && j.Kept == kept && (oldest.ID == 0 || j.endedBefore(&oldest)) {
					oldest = j
				}
				return false
			})
		}
		return true
	})
	return oldest
}

// first returns the job that is forgotten first: of the pool of which most is kept, in the measure that is exceeded, so
// that no pool takes the place of others. Of several such pools it is that whose job ended first.
func (t *Table) first(measure func(*Sums) int64) (first Job) {
	most := int64(-1)
	t.pools.Scan(func(id tree.ID, sums Sums) bool {
		n := measure(&sums)
		t.jobs.Ascend(Job{Pool: id}, func(j Job) bool {
			if n > most || n == most && j.endedBefore(&first) {
				most, first = n, j
			}
			return false
		})
		return true
	})
	return first
}
