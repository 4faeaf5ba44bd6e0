package cluster

import (
	"encoding/binary"
	"strings"

	"github.com/tidwall/btree"
)

// Shape is what instances with devices have in common for those who look for gaps: the request and the processor that
// goes with it, in whole cores.
type Shape struct {
	Request DeviceRequest
	CPU     int64
	// Instances hold room now.
	Instances uint32
}

// countShape counts an instance of a task for each of its requests, or no more.
func (s *State) countShape(spec *TaskSpec, change int) {
	for i := range spec.Devices {
		q := &spec.Devices[i]
		cores := (spec.Resources[CPU] + 999) / 1000
		request := string(binary.BigEndian.AppendUint32([]byte(q.Kind+"\x00"), uint32(q.Amount))) + strings.Join(q.Models, "\x00")
		name := string(binary.BigEndian.AppendUint64([]byte(request+"\x00\x00"), uint64(cores)))
		shape, known := s.shapes.Get(name)
		if !known {
			shape = Shape{Request: *q, CPU: cores * 1000}
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

// Shapes returns the present shapes, in constant time; they do not change with the value.
func (s *State) Shapes() Shapes { return Shapes{s.shapes.Copy()} }

// All returns the shapes, those with equal requests side by side in the order of their processor.
func (s Shapes) All() []Shape { return s.table.Values() }
