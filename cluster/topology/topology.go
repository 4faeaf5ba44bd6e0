// Package topology counts instances by place: on each node, and on all nodes with the same value of an attribute.
package topology

import (
	"cmp"

	"github.com/tidwall/btree"
)

// Counts is how many of some instances are where. The zero Counts has none.
type Counts[Node cmp.Ordered] struct {
	nodes   *btree.Map[Node, uint32]
	regions []region
}

// region counts by the values of one attribute.
type region struct {
	attribute string
	counts    *btree.Map[string, uint32]
}

// New returns counts of nothing yet.
func New[Node cmp.Ordered]() *Counts[Node] {
	return &Counts[Node]{nodes: new(btree.Map[Node, uint32])}
}

// Copy returns counts that are equal to c, for changing, in constant time. From then on c must not change: others may
// be reading it.
func (c *Counts[Node]) Copy() *Counts[Node] {
	clone := &Counts[Node]{nodes: copied(c.nodes), regions: append([]region(nil), c.regions...)}
	for i := range clone.regions {
		clone.regions[i].counts = copied(clone.regions[i].counts)
	}
	return clone
}

func copied[K cmp.Ordered](m *btree.Map[K, uint32]) *btree.Map[K, uint32] {
	shared := *m // its Copy marks what it copies
	return shared.Copy()
}

// Empty tells whether nothing is counted.
func (c *Counts[Node]) Empty() bool { return c.nodes.Len() == 0 }

// On returns how many instances a node has.
func (c *Counts[Node]) On(n Node) uint32 {
	count, _ := c.nodes.Get(n)
	return count
}

// Each visits the nodes with instances, in order.
func (c *Counts[Node]) Each(visit func(n Node, count uint32)) {
	c.nodes.Scan(func(n Node, count uint32) bool {
		visit(n, count)
		return true
	})
}

// Add counts so many instances more on a node; ValueOf returns the value that the node has of an attribute.
func (c *Counts[Node]) Add(n Node, change int, valueOf func(attribute string) string) {
	add(c.nodes, n, change)
	for _, r := range c.regions {
		add(r.counts, valueOf(r.attribute), change)
	}
}

func add[K cmp.Ordered](counts *btree.Map[K, uint32], at K, change int) {
	old, _ := counts.Get(at)
	if count := int(old) + change; count > 0 {
		counts.Set(at, uint32(count))
		return
	}
	counts.Delete(at)
}

// Divided tells whether instances are counted by the values of an attribute.
func (c *Counts[Node]) Divided(attribute string) bool { return c.region(attribute) != nil }

func (c *Counts[Node]) region(attribute string) *region {
	for i := range c.regions {
		if c.regions[i].attribute == attribute {
			return &c.regions[i]
		}
	}
	return nil
}

// Divide counts by the values of an attribute from now on; ValueOf returns the value that a node has.
func (c *Counts[Node]) Divide(attribute string, valueOf func(Node) string) {
	r := region{attribute, new(btree.Map[string, uint32])}
	c.Each(func(n Node, count uint32) { add(r.counts, valueOf(n), int(count)) })
	c.regions = append(c.regions, r)
}

// Within returns how many instances the nodes with a value of an attribute have; Divided must be true of it.
func (c *Counts[Node]) Within(attribute, value string) uint32 {
	count, _ := c.region(attribute).counts.Get(value)
	return count
}

// Move counts one instance with other values of the attributes, because its node has others now.
func (c *Counts[Node]) Move(from, to func(attribute string) string) {
	for _, r := range c.regions {
		if old, now := from(r.attribute), to(r.attribute); old != now {
			add(r.counts, old, -1)
			add(r.counts, now, 1)
		}
	}
}

// Same tells whether counts agree with some by node alone; ValueOf returns the value that a node has of
// an attribute. It takes time in proportion to them.
func (c *Counts[Node]) Same(plain *Counts[Node], valueOf func(n Node, attribute string) string) bool {
	same := c.nodes.Len() == plain.nodes.Len()
	for _, r := range c.regions {
		fresh := New[Node]()
		plain.Each(func(n Node, count uint32) { fresh.nodes.Set(n, count) })
		fresh.Divide(r.attribute, func(n Node) string { return valueOf(n, r.attribute) })
		r.counts.Scan(func(value string, count uint32) bool {
			same = same && fresh.Within(r.attribute, value) == count
			return same
		})
		same = same && fresh.regions[0].counts.Len() == r.counts.Len()
	}
	plain.Each(func(n Node, count uint32) { same = same && c.On(n) == count })
	return same
}
