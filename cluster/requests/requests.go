// Package requests remembers how requests with an id were answered, and says which is forgotten first when they are too
// many.
package requests

import (
	"cmp"

	"github.com/tidwall/btree"

	"starling/cluster/facts"
	"starling/terms/access"
	"starling/terms/rules"
)

// Table is the memory.
type Table struct {
	answers btree.Map[string, facts.Request]
	// order has the keys by when they came. Owners has the same for each owner, most has the owners, those with the most
	// last, and of them those whose oldest is the oldest.
	order  btree.Map[uint64, string]
	owners btree.BTreeG[place]
	most   btree.BTreeG[owner]
	counts btree.Map[string, uint32]
}

// place is where a request stands among those of its owner.
type place struct {
	owner  string
	number uint64
}

// owner is who has asked, how often, and first under which number.
type owner struct {
	count  uint32
	oldest uint64
	name   string
}

// New returns an empty memory.
func New() Table {
	none := btree.Options{NoLocks: true}
	return Table{
		owners: *btree.NewBTreeGOptions(func(a, b place) bool {
			return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.number, b.number)) < 0
		}, none),
		most: *btree.NewBTreeGOptions(func(a, b owner) bool {
			return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(b.oldest, a.oldest)) < 0
		}, none),
	}
}

// Copy returns a copy in constant time; like that of a tree, it marks the memory.
func (t *Table) Copy() Table {
	return Table{*t.answers.Copy(), *t.order.Copy(), *t.owners.Copy(), *t.most.Copy(), *t.counts.Copy()}
}

// Len returns how many are remembered.
func (t *Table) Len() int { return t.order.Len() }

// Of returns what is remembered under a key.
func (t *Table) Of(key string) (r facts.Request, ok bool) { return t.answers.Get(key) }

// Rows lists all, the oldest first.
func (t *Table) Rows() (all []facts.Row[string, facts.Request]) {
	t.order.Scan(func(_ uint64, key string) bool {
		answer, _ := t.answers.Get(key)
		all = append(all, facts.Row[string, facts.Request]{Key: key, Value: answer})
		return true
	})
	return all
}

// Add remembers an answer under a key that is not known, and a number above all others.
func (t *Table) Add(number uint64, key string, answer facts.Request) {
	t.answers.Set(key, answer)
	t.order.Set(number, key)
	name := access.Asker(key)
	t.recount(name, func() { t.owners.Set(place{name, number}) }, 1)
}

// Forget forgets the oldest that is remembered, since rules.PoolShares of the owner with the most, and returns it.
func (t *Table) Forget(in rules.Number) (key string, answer facts.Request) {
	number, _, _ := t.order.Min()
	if first, ok := t.most.Max(); ok && in >= rules.PoolShares {
		number = first.oldest
	}
	key, _ = t.order.Delete(number)
	answer, _ = t.answers.Delete(key)
	name := access.Asker(key)
	t.recount(name, func() { t.owners.Delete(place{name, number}) }, -1)
	return key, answer
}

// recount does something to the requests of an owner, who then has one more or less.
func (t *Table) recount(name string, change func(), by int) {
	count, _ := t.counts.Get(name)
	if count > 0 {
		t.most.Delete(owner{count, t.oldest(name), name})
	}
	change()
	if count += uint32(by); count == 0 {
		t.counts.Delete(name)
		return
	}
	t.counts.Set(name, count)
	t.most.Set(owner{count, t.oldest(name), name})
}

// oldest returns the lowest number of an owner's requests, who has one.
func (t *Table) oldest(name string) (number uint64) {
	t.owners.Ascend(place{owner: name}, func(p place) bool {
		number = p.number
		return false
	})
	return number
}
