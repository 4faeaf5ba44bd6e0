package cluster

import (
	"encoding/binary"
	"strings"

	"github.com/tidwall/btree"

	"starling/terms"
)

// Shape is what instances with devices have in common for those who look for gaps: a request, and what goes with it.
type Shape struct {
	Request terms.DeviceRequest
	// Instances hold room now, and Resources is what all of them have.
	Instances uint32
	Resources terms.Resources
}

// countShape counts an instance of a task for each of its requests, or no more.
func (s *State) countShape(spec *terms.Task, change int) {
	for i := range spec.Devices {
		q := &spec.Devices[i]
		if q.Kind == terms.VirtualPeers.String() {
			continue // nothing of them can become useless: each instance takes one
		}
		name := string(binary.BigEndian.AppendUint32([]byte(q.Kind+"\x00"), uint32(q.Amount))) + strings.Join(q.Models, "\x00")
		shape, _ := s.shapes.Get(name)
		shape.Request = *q
		for k, amount := range spec.Resources {
			shape.Resources[k] += amount * int64(change)
		}
		if shape.Instances = uint32(int(shape.Instances) + change); shape.Instances == 0 {
			s.shapes.Delete(name)
			continue
		}
		s.shapes.Set(name, shape)
	}
}

// Shapes are the shapes of what holds devices at one moment.
type Shapes struct{ table *btree.Map[string, Shape] }

// CopyShapes returns the present shapes, in constant time; they do not change with the value. Like Copy, it marks s.
func (s *State) CopyShapes() Shapes { return Shapes{s.shapes.Copy()} }

// All returns the shapes, by the kind of device, its amount and its models.
func (s Shapes) All() []Shape { return s.table.Values() }
