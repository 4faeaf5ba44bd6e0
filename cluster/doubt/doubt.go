// Package doubt lists the jobs of which it is to be asked whether any node could run them.
package doubt

import (
	"slices"

	"github.com/tidwall/btree"

	"starling/terms"
)

// List has the jobs of which no node could run a task, and those of which that is to be asked: some, those all when
// nodes offer something else, and all that wait when they offer less. None is to be asked about between two entries.
type List struct {
	unsuited    btree.Set[terms.JobID]
	jobs        []terms.JobID
	moved, less bool
}

// Copy returns a copy; like that of a tree, it marks the list.
func (l *List) Copy() List { return List{*l.unsuited.Copy(), slices.Clone(l.jobs), l.moved, l.less} }

// Note puts a job among those of which no node could run a task, or takes it out.
func (l *List) Note(id terms.JobID, unsuited bool) {
	if l.unsuited.Delete(id); unsuited {
		l.unsuited.Insert(id)
	}
}

// Add has it asked about a job.
func (l *List) Add(id terms.JobID) { l.jobs = append(l.jobs, id) }

// Offers has it asked because a node offers something else, or less.
func (l *List) Offers(less bool) { l.moved, l.less = true, l.less || less }

// Forget takes back that it is to be asked about any.
func (l *List) Forget() { l.jobs, l.moved, l.less = nil, false, false }

// Take returns the jobs of which it is to be asked, the oldest first, and forgets that. Each visits all that wait.
func (l *List) Take(each func(visit func(terms.JobID))) []terms.JobID {
	if l.moved {
		l.jobs = append(l.jobs, l.unsuited.Keys()...)
	}
	if l.less {
		each(l.Add)
	}
	all := l.jobs
	l.Forget()
	slices.Sort(all)
	return slices.Compact(all)
}

// Unsuited lists the jobs of which no node could run a task.
func (l *List) Unsuited() []terms.JobID { return l.unsuited.Keys() }
