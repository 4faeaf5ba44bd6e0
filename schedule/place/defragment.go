package place

import (
	"cmp"
	"slices"

	"starling/cluster"
)

// Fragmentation is what is left of devices and is of no use to typical work: because less is left of each than it asks
// for, or because too little else is left on the node. Defragmenting places an instance where that grows least (Weng et
// al., Beware of Fragmentation, USENIX ATC 2023). What is typical is told by what holds devices now.

// shapesMax bounds the shapes that count as typical.
const shapesMax = 64

// gaps computes fragmentation.
type gaps struct {
	// known are the shapes of what held devices when placement began, typical the same by request.
	known   cluster.Shapes
	typical []typical
	counted bool
	// free is reused: what is left of each device of the node in question.
	free []cluster.Millidevices
}

// typical are the shapes that ask for the same of devices.
type typical struct {
	request   cluster.DeviceRequest
	instances int64
	shapes    []cluster.Shape
}

// requests returns the shapes that ask for most in all, by request.
func (g *gaps) requests() []typical {
	if g.counted {
		return g.typical
	}
	g.counted = true
	demand := func(s *cluster.Shape) int64 { return int64(s.Instances) * int64(s.Request.Amount) }
	shapes := g.known.All()
	slices.SortStableFunc(shapes, func(a, b cluster.Shape) int { return cmp.Compare(demand(&b), demand(&a)) })
	for _, shape := range shapes[:min(len(shapes), shapesMax)] {
		at := slices.IndexFunc(g.typical, func(t typical) bool { return t.request.Equal(shape.Request) })
		if at < 0 {
			at = len(g.typical)
			g.typical = append(g.typical, typical{request: shape.Request})
		}
		t := &g.typical[at]
		t.shapes = append(t.shapes, shape)
		t.instances += int64(shape.Instances)
	}
	return g.typical
}

// growth returns how much the fragmentation of a node grows with an instance of a task: thousandths of devices, times the
// number of instances of the shapes that cannot use them.
func (g *gaps) growth(node *cluster.Node, free *cluster.Resources, spec *cluster.TaskSpec) int64 {
	growth := int64(0)
	for _, offer := range node.Offer.Devices {
		g.look(node, offer)
		before := g.useless(offer, free[cluster.CPU])
		for i := range spec.Devices {
			if spec.Devices[i].Kind == offer.Kind {
				g.take(&spec.Devices[i])
			}
		}
		growth += g.useless(offer, free[cluster.CPU]-spec.Resources[cluster.CPU]) - before
	}
	return growth
}

// look notes what is left of the devices of a kind.
func (g *gaps) look(node *cluster.Node, offer cluster.DeviceOffer) {
	g.free = g.free[:0]
	for range offer.Count {
		g.free = append(g.free, cluster.WholeDevice)
	}
	node.EachDeviceInUse(offer.Kind, func(number uint32, used cluster.Millidevices) {
		if number < offer.Count {
			g.free[number] -= used
		}
	})
}

// take takes what a request gets: the device with the least left for a share, or whole devices.
func (g *gaps) take(q *cluster.DeviceRequest) {
	for wanted := q.Amount; wanted > 0; {
		best := -1
		for i, left := range g.free {
			if left >= min(q.Amount, cluster.WholeDevice) && (best < 0 || left < g.free[best]) {
				best = i
			}
		}
		part := min(wanted, cluster.WholeDevice)
		g.free[best] -= part
		wanted -= part
	}
}

// useless adds up what is left of the devices of a kind and of no use to each instance that is typical.
func (g *gaps) useless(offer cluster.DeviceOffer, cpu int64) (sum int64) {
	all := g.requests()
	for i := range all {
		t := &all[i]
		if t.request.Kind != offer.Kind {
			continue
		}
		part := min(t.request.Amount, cluster.WholeDevice)
		useful, small := cluster.Millidevices(0), int64(0)
		for _, left := range g.free {
			if left >= part {
				useful += left
			} else {
				small += int64(left)
			}
		}
		if !t.request.Takes(offer.Model) || !t.request.Share() && useful < t.request.Amount {
			sum += (small + int64(useful)) * t.instances
			continue
		}
		for k := range t.shapes {
			shape := &t.shapes[k]
			usable := int64(useful)
			if shape.CPU > 0 {
				usable = min(usable, cpu/shape.CPU*int64(t.request.Amount))
			}
			sum += (small + int64(useful) - usable) * int64(shape.Instances)
		}
	}
	return sum
}
