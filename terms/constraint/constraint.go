// Package constraint says what must hold of a node, and of what runs around it, for a task to run there.
//
// A constraint asks about an attribute of the node, or about how many instances with a label run on it or around it, or
// it joins other constraints. It is evaluated against a Place, so that whoever asks decides how the answers are found.
package constraint

import (
	"slices"
	"strconv"

	"starling/terms/codec"
)

// Operator compares what is found with what a constraint says.
type Operator uint8

// The operators. For attributes the four orders compare integers; a value or attribute that is none fails them.
const (
	Equal Operator = iota + 1
	NotEqual
	In
	NotIn
	Exists
	NotExists
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// Operators lists every operator's name in job files at its number.
func Operators() []string {
	return []string{"", "=", "!=", "in", "not in", "exists", "not exists", "<", "<=", ">", ">="}
}

// String returns the operator as job files write it.
func (o Operator) String() string { return Operators()[o] }

// counts tells whether the operator compares numbers of instances.
func (o Operator) counts() bool { return o == Equal || o == NotEqual || o >= Less }

// Constraint is one condition. It has exactly one of Attribute, Label, All and Any.
type Constraint struct {
	// Attribute is compared with Values: one, any number for In and NotIn, none for Exists and NotExists.
	Attribute string
	// Label counts the instances that carry it with the one value in Values, and compares their number with Count.
	Label string
	// Within counts the instances on all nodes that have the same value of this attribute as the node in question; without
	// it those on the node itself. Nodes without the attribute belong together.
	Within   string
	Operator Operator
	Values   []string
	Count    uint32
	// All of these must hold, or Any of them.
	All, Any []Constraint
	// Soft constraints hold until an instance has waited for SoftTimeoutMillis; from then on nodes where they hold are
	// only preferred. Parts of a constraint are never soft.
	Soft              bool
	SoftTimeoutMillis uint32
}

// Place is what constraints ask about: a node with what runs on it and around it.
type Place interface {
	// Attribute returns the value of an attribute of the node and whether it has it.
	Attribute(name string) (value string, exists bool)
	// Instances returns how many instances a constraint about a label counts.
	Instances(c *Constraint) uint32
}

// Holds tells whether the constraint holds at a place.
func (c *Constraint) Holds(p Place) bool {
	switch {
	case len(c.All) > 0:
		for i := range c.All {
			if !c.All[i].Holds(p) {
				return false
			}
		}
		return true
	case len(c.Any) > 0:
		for i := range c.Any {
			if c.Any[i].Holds(p) {
				return true
			}
		}
		return false
	case c.Label != "":
		return c.Operator.compare(int64(p.Instances(c)), int64(c.Count))
	}
	value, exists := p.Attribute(c.Attribute)
	switch c.Operator {
	case Exists:
		return exists
	case NotExists:
		return !exists
	case Equal, In:
		return exists && slices.Contains(c.Values, value)
	case NotEqual, NotIn:
		return !slices.Contains(c.Values, value)
	}
	have, err1 := strconv.ParseInt(value, 10, 64)
	want, err2 := strconv.ParseInt(c.Values[0], 10, 64)
	return err1 == nil && err2 == nil && c.Operator.compare(have, want)
}

func (o Operator) compare(have, want int64) bool {
	switch o {
	case Equal:
		return have == want
	case NotEqual:
		return have != want
	case Less:
		return have < want
	case LessOrEqual:
		return have <= want
	case Greater:
		return have > want
	}
	return have >= want
}

// EachLeaf visits the parts of the constraint that ask about something themselves.
func (c *Constraint) EachLeaf(visit func(*Constraint)) {
	for i := range c.All {
		c.All[i].EachLeaf(visit)
	}
	for i := range c.Any {
		c.Any[i].EachLeaf(visit)
	}
	if c.Attribute != "" || c.Label != "" {
		visit(c)
	}
}

// Mentions tells whether any part of the constraint asks about the attribute.
func (c *Constraint) Mentions(attribute string) bool {
	found := false
	c.EachLeaf(func(leaf *Constraint) { found = found || leaf.Attribute == attribute })
	return found
}

// Social tells whether any part of the constraint asks about what runs.
func (c *Constraint) Social() bool {
	found := false
	c.EachLeaf(func(leaf *Constraint) { found = found || leaf.Label != "" })
	return found
}

// GainsByMore tells whether a constraint about a label may begin to hold when there are more instances.
func (c *Constraint) GainsByMore() bool { return c.Operator != Less && c.Operator != LessOrEqual }

// Begins tells whether a constraint about a label fails where there is no instance and holds where there is one: it
// asks for company, and the first of those that do so has none.
func (c *Constraint) Begins() bool {
	return c.Label != "" && !c.Operator.compare(0, int64(c.Count)) && c.Operator.compare(1, int64(c.Count))
}

// GainsByFewer tells whether a constraint about a label may begin to hold when there are fewer instances.
func (c *Constraint) GainsByFewer() bool {
	return c.Operator != Greater && c.Operator != GreaterOrEqual
}

// Same tells whether two constraints are the same in every field.
func Same(a, b Constraint) bool { return codec.Equal(&a, &b, Code) }

// Code writes or reads a constraint.
func Code(c *codec.Coder, k *Constraint) { code(DepthMax)(c, k) }

// code codes a constraint with at most so many within each other.
func code(depth int) func(*codec.Coder, *Constraint) {
	return func(c *codec.Coder, k *Constraint) {
		codec.Text(c, &k.Attribute, NameBytesMax)
		codec.Text(c, &k.Label, NameBytesMax)
		codec.Text(c, &k.Within, NameBytesMax)
		codec.Integer(c, &k.Operator, uint64(GreaterOrEqual))
		codec.Texts(c, &k.Values, ValuesMax, ValueBytesMax)
		codec.Uint32s(c, &k.Count)
		parts := PartsMax
		if depth == 1 {
			parts = 0
		}
		codec.List(c, &k.All, parts, code(depth-1))
		codec.List(c, &k.Any, parts, code(depth-1))
		codec.Flags(c, &k.Soft)
		codec.Uint32s(c, &k.SoftTimeoutMillis)
	}
}
