package trace

import (
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/terms"
)

// gauge measures fragmentation: how much of the GPUs that are left is of no use to a task of the trace, averaged over
// all of them (Weng et al., Beware of Fragmentation, USENIX ATC 2023). A task without GPU has no use for any.
type gauge struct {
	shapes []Shape
	// tasks counts those of each shape, total all of them.
	tasks []int64
	total int64
	// useless is of each node what is left and of no use, summed over all tasks; sum is that of all nodes.
	useless []int64
	sum     int64
}

func newGauge(tasks []Task, nodes int) *gauge {
	g := &gauge{useless: make([]int64, nodes), total: int64(len(tasks))}
	at := map[Shape]int{}
	for i := range tasks {
		shape, known := at[tasks[i].Shape]
		if !known {
			shape = len(g.shapes)
			at[tasks[i].Shape] = shape
			g.shapes, g.tasks = append(g.shapes, tasks[i].Shape), append(g.tasks, 0)
		}
		g.tasks[shape]++
	}
	return g
}

// look measures a node again.
func (g *gauge) look(s *cluster.State, n facts.NodeIndex) {
	node := s.Node(n)
	offer := node.DeviceOf(gpu)
	left := make([]terms.Millidevices, offer.Count)
	for i := range left {
		left[i] = terms.WholeDevice
	}
	node.EachDeviceInUse(gpu, func(number uint32, used terms.Millidevices) { left[number] -= used })
	free := s.Free(n)
	now := int64(0)
	for i := range g.shapes {
		now += useless(&g.shapes[i], left, &free, offer.Model) * g.tasks[i]
	}
	g.sum += now - g.useless[n]
	g.useless[n] = now
}

// useless returns how much of what is left of a node's devices a task of a shape cannot use.
func useless(shape *Shape, left []terms.Millidevices, free *terms.Resources, model string) int64 {
	part := min(shape.GPU, terms.WholeDevice)
	useful, small := terms.Millidevices(0), terms.Millidevices(0)
	for _, one := range left {
		if one >= part {
			useful += one
		} else {
			small += one
		}
	}
	takes := shape.Models == "" || strings.Contains("|"+shape.Models+"|", "|"+model+"|")
	enough := useful >= shape.GPU && useful > 0
	if shape.GPU > 0 && enough && takes && shape.Resources.Fits(free) {
		return int64(small)
	}
	return int64(small + useful)
}

// milli returns the fragmentation of all nodes, in thousandths of GPUs.
func (g *gauge) milli() float64 { return float64(g.sum) / float64(g.total) }
