package sim

import (
	"slices"

	"starling/cluster"
)

// modelShape is a request for devices by an instance that has them, with the processor that goes with it.
type modelShape struct {
	request cluster.DeviceRequest
	cores   int64
}

// shapes lists the requests of all that has devices.
func (m *model) shapes() []modelShape {
	var all []modelShape
	m.eachHeld(func(t *modelTask, s *modelSlot) {
		spec := t.spec(s.Version)
		for _, q := range spec.Devices {
			all = append(all, modelShape{q, (spec.Resources[cluster.CPU] + 999) / 1000})
		}
	})
	return all
}

// spoilt returns how much more of the node's devices the shapes could not use if it had an instance of the task: for each
// shape, what is left less what it could use of it.
func (r *modelRoom) spoilt(spec *cluster.TaskSpec, shapes []modelShape) int64 {
	after := &modelRoom{node: r.node, free: r.free, devices: slices.Clone(r.devices)}
	for k := range after.free {
		after.free[k] -= spec.Resources[k]
	}
	for _, q := range spec.Devices {
		for _, number := range r.chooseDevices(q) {
			after.devices = append(after.devices, cluster.DeviceUse{Kind: q.Kind, Number: number, Amount: min(q.Amount, 1000)})
		}
	}
	return after.useless(shapes) - r.useless(shapes)
}

func (r *modelRoom) useless(shapes []modelShape) (sum int64) {
	for _, shape := range shapes {
		for _, d := range r.node.offer.Devices {
			if d.Kind == shape.request.Kind {
				sum += r.left1000(d) - r.usable(d, shape)
			}
		}
	}
	return sum
}

func (r *modelRoom) left1000(d cluster.DeviceOffer) (sum int64) {
	for number := range d.Count {
		sum += int64(r.deviceLeft(d.Kind, number))
	}
	return sum
}

// usable returns how much of the devices instances of a shape could use: those with enough left, as long as there is
// processor.
func (r *modelRoom) usable(d cluster.DeviceOffer, shape modelShape) (sum int64) {
	q := shape.request
	if len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
		return 0
	}
	for number := range d.Count {
		if left := int64(r.deviceLeft(d.Kind, number)); left >= 1000 || left >= int64(q.Amount) {
			sum += left
		}
	}
	if sum < int64(q.Amount) {
		return 0
	}
	if shape.cores > 0 {
		sum = min(sum, r.free[cluster.CPU]/(shape.cores*1000)*int64(q.Amount))
	}
	return sum
}
