package model

import (
	"slices"

	"starling/cluster"
)

// shape is a request for devices by an instance that has them, with the processor that goes with it.
type shape struct {
	request cluster.DeviceRequest
	cores   int64
}

// shapes lists the requests of all that has devices.
func (m *Model) shapes() []shape {
	var all []shape
	for _, j := range m.Jobs {
		j.each(func(s *seat) {
			spec := s.spec()
			if !s.Phase.Holds() {
				return
			}
			for _, q := range spec.Devices {
				all = append(all, shape{q, (spec.Resources[cluster.CPU] + 999) / 1000})
			}
		})
	}
	return all
}

// spoilt returns how much more of the node's devices the shapes could not use if it had an instance of the task: for each
// shape, what is left less what it could use of it.
func (r *room) spoilt(spec *cluster.TaskSpec, shapes []shape) int64 {
	after := &room{node: r.node, free: r.free, devices: slices.Clone(r.devices)}
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

func (r *room) useless(shapes []shape) (sum int64) {
	for _, one := range shapes {
		for _, d := range r.node.offer.Devices {
			if d.Kind == one.request.Kind {
				sum += r.left1000(d) - r.usable(d, one)
			}
		}
	}
	return sum
}

func (r *room) left1000(d cluster.DeviceOffer) (sum int64) {
	for number := range d.Count {
		sum += int64(r.deviceLeft(d.Kind, number))
	}
	return sum
}

// usable returns how much of the devices instances of a shape could use: those with enough left, as long as there is
// processor.
func (r *room) usable(d cluster.DeviceOffer, by shape) (sum int64) {
	q := by.request
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
	if by.cores > 0 {
		sum = min(sum, r.free[cluster.CPU]/(by.cores*1000)*int64(q.Amount))
	}
	return sum
}
