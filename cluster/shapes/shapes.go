// Package shapes counts what the instances that hold devices have in common, for what looks for gaps.
package shapes

import (
	"encoding/binary"
	"strings"

	"github.com/tidwall/btree"

	"starling/terms"
)

// Shape is a request, and what goes with it.
type Shape struct {
	Request terms.DeviceRequest
	// Instances hold room now, and Resources is what all of them have.
	Instances uint32
	Resources terms.Resources
}

// Table has the shapes by the kind of device, its amount and its models.
type Table struct{ rows btree.Map[string, Shape] }

// Copy returns a copy in constant time; like that of a tree, it marks the table.
func (t *Table) Copy() Table { return Table{*t.rows.Copy()} }

// Count counts an instance of a task for each of its requests, or no more.
func (t *Table) Count(spec *terms.Task, change int) {
	for i := range spec.Devices {
		q := &spec.Devices[i]
		if q.Kind == terms.VirtualPeers.String() {
			continue // nothing of them can become useless: each instance takes one
		}
		name := string(binary.BigEndian.AppendUint32([]byte(q.Kind+"\x00"), uint32(q.Amount))) +
			strings.Join(q.Models, "\x00")
		shape, _ := t.rows.Get(name)
		shape.Request = *q
		for k, amount := range spec.Resources {
			shape.Resources[k] += amount * int64(change)
		}
		if shape.Instances = uint32(int(shape.Instances) + change); shape.Instances == 0 {
			t.rows.Delete(name)
			continue
		}
		t.rows.Set(name, shape)
	}
}

// Names returns the names of the shapes, in their order.
func (t *Table) Names() []string { return t.rows.Keys() }

// All returns the shapes, in their order.
func (t *Table) All() []Shape { return t.rows.Values() }
