// Package names finds jobs by their names, and names with which jobs would have one user of their own.
package names

import (
	"encoding/binary"

	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/terms"
)

// Table has the newest job of each name that is known.
type Table struct {
	jobs btree.Map[terms.JobName, terms.JobID]
	// users has the names by the numbers of the users that are the jobs' own.
	users btree.Set[string]
}

// Copy returns a copy in constant time; like that of a tree, it marks the table.
func (t *Table) Copy() Table { return Table{*t.jobs.Copy(), *t.users.Copy()} }

// Get returns the job of a name; ok is false if none is known.
func (t *Table) Get(name terms.JobName) (id terms.JobID, ok bool) { return t.jobs.Get(name) }

// Set gives a name to a job.
func (t *Table) Set(name terms.JobName, id terms.JobID) {
	t.jobs.Set(name, id)
	t.users.Insert(keyOf(name))
}

// Delete forgets a name.
func (t *Table) Delete(name terms.JobName) {
	t.jobs.Delete(name)
	t.users.Delete(keyOf(name))
}

// Ascend visits the names from one on, until visit returns false.
func (t *Table) Ascend(from terms.JobName, visit func(terms.JobName, terms.JobID) bool) {
	t.jobs.Ascend(from, visit)
}

// Scan visits all names, until visit returns false.
func (t *Table) Scan(visit func(terms.JobName, terms.JobID) bool) { t.jobs.Scan(visit) }

var _ facts.Table[terms.JobName, terms.JobID] = (*Table)(nil)

// WithUserOf returns another known name with which a job has the same user of its own; ok is false if there is none.
func (t *Table) WithUserOf(name terms.JobName) (other terms.JobName, ok bool) {
	user := ofUser(name)
	t.users.Ascend(user, func(one string) bool {
		other, ok = terms.JobName(one[min(len(user), len(one)):]), one[:min(len(user), len(one))] == user
		if ok && other == name {
			ok = false
			return true
		}
		return false
	})
	return other, ok
}

// keyOf returns the number of the user that is a job's own, and its name.
func keyOf(name terms.JobName) string {
	key := make([]byte, 0, 64) // nearly always enough
	return string(append(binary.BigEndian.AppendUint32(key, name.OwnUser()), name...))
}

func ofUser(name terms.JobName) string {
	return string(binary.BigEndian.AppendUint32(nil, name.OwnUser()))
}
