package model

import (
	"math/big"
	"slices"

	"starling/cluster"
	"starling/terms"
)

// shape is a request for devices by an instance that has them, with what goes with it.
type shape struct {
	request   terms.DeviceRequest
	resources terms.Resources
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
				if q.Kind != "peers" {
					all = append(all, shape{q, spec.Resources})
				}
			}
		})
	}
	return all
}

// spoilt returns how much more of the node's devices would be stranded if it had an instance of the task, and how much
// more the shapes could not use: for each shape, what is left less what it could use of it.
func (r *room) spoilt(spec *terms.Task, shapes []shape) (stranded, useless int64) {
	after := &room{node: r.node, free: r.free, devices: slices.Clone(r.devices)}
	for k := range after.free {
		after.free[k] -= spec.Resources[k]
	}
	for _, q := range spec.Devices {
		for _, number := range r.chooseDevices(q) {
			after.devices = append(after.devices, cluster.DeviceUse{Kind: q.Kind, Number: number, Amount: min(q.Amount, 1000)})
		}
	}
	for _, d := range r.node.offer.Devices {
		stranded += after.stranded(d, shapes) - r.stranded(d, shapes)
		useless += after.useless(d, shapes) - r.useless(d, shapes)
	}
	return stranded, useless
}

// stranded returns how much of the devices is too much for what else is free, by what the shapes have of both together.
func (r *room) stranded(d terms.DeviceOffer, shapes []shape) int64 {
	devices, with := int64(0), terms.Resources{}
	for _, one := range shapes {
		if one.request.Kind == d.Kind {
			devices += int64(one.request.Amount)
			with = with.Plus(one.resources)
		}
	}
	left := big.NewInt(r.left1000(d))
	used := new(big.Int).Set(left)
	for k, free := range r.free {
		if with[k] > 0 {
			enough := new(big.Int).Mul(big.NewInt(max(free, 0)), big.NewInt(devices))
			if enough.Quo(enough, big.NewInt(with[k])); enough.Cmp(used) < 0 {
				used = enough
			}
		}
	}
	return left.Sub(left, used).Int64()
}

func (r *room) useless(d terms.DeviceOffer, shapes []shape) (sum int64) {
	for _, one := range shapes {
		if d.Kind == one.request.Kind {
			sum += r.left1000(d) - r.usable(d, one.request)
		}
	}
	return sum
}

func (r *room) left1000(d terms.DeviceOffer) (sum int64) {
	for number := range d.Count {
		sum += int64(r.deviceLeft(d.Kind, number))
	}
	return sum
}

// usable returns how much of the devices equal requests could use, one after the other.
func (r *room) usable(d terms.DeviceOffer, q terms.DeviceRequest) int64 {
	if len(q.Models) > 0 && !slices.Contains(q.Models, d.Model) {
		return 0
	}
	times, whole := int64(0), int64(0)
	for number := range d.Count {
		left := int64(r.deviceLeft(d.Kind, number))
		times += left / int64(q.Amount)
		if left == 1000 {
			whole++
		}
	}
	if q.Amount >= 1000 {
		times = whole * 1000 / int64(q.Amount)
	}
	return times * int64(q.Amount)
}
