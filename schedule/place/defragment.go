package place

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"starling/cluster"
	"starling/cluster/shapes"
	"starling/terms"
)

// Defragmenting leaves devices where typical work can use them, and typical is what holds devices now. Two things make
// what is left useless, and an instance goes where the first grows least, and among those where the second does:
//
//   - Devices are stranded where less is left of something else than goes with them in the mean: whoever took the
//     processors of a machine took its devices too.
//   - What is left of each device, or of the whole devices of a node, is too little for what is asked for (after Weng
//     et al., Beware of Fragmentation, USENIX ATC 2023), each request counting as often as it runs.

// shapesMax bounds the shapes of a kind of device that count as typical.
const shapesMax = 64

// Gaps computes what is of no use.
type Gaps struct {
	// known are the shapes of what held devices when placement began, kinds the same by kind of device.
	known   shapes.Table
	kinds   []typical
	counted bool
	// free is reused: what is left of each device of the node in question.
	free []terms.Millidevices
}

// NewGaps returns what is of no use as things are now, to be counted when it is asked for.
func NewGaps(s *cluster.State) *Gaps { return &Gaps{known: s.CopyShapes()} }

// typical is what holds devices of a kind: the shapes that ask for most in all, and their sums.
type typical struct {
	kind      string
	shapes    []shapes.Shape
	instances int64
	devices   terms.Millidevices
	resources terms.Resources
	pieces    []*pieces
}

// pieces remembers of how much use what is left of one device of a model is to those that ask for a share; -1 is not
// asked.
type pieces struct {
	model string
	use   [terms.WholeDevice + 1]int64
}

// of returns what is typical of a kind of device, nil if nothing holds any.
func (g *Gaps) of(kind string) *typical {
	if !g.counted {
		g.count()
	}
	for i := range g.kinds {
		if g.kinds[i].kind == kind {
			return &g.kinds[i]
		}
	}
	return nil
}

func (g *Gaps) count() {
	g.counted = true
	demand := func(s *shapes.Shape) int64 { return int64(s.Instances) * int64(s.Request.Amount) }
	all := g.known.All()
	slices.SortStableFunc(all, func(a, b shapes.Shape) int { return cmp.Compare(demand(&b), demand(&a)) })
	for i := range all {
		one := &all[i]
		at := slices.IndexFunc(g.kinds, func(t typical) bool { return t.kind == one.Request.Kind })
		if at < 0 {
			at = len(g.kinds)
			g.kinds = append(g.kinds, typical{kind: one.Request.Kind})
		}
		t := &g.kinds[at]
		if len(t.shapes) == shapesMax {
			continue
		}
		t.shapes = append(t.shapes, *one)
		t.instances += int64(one.Instances)
		t.devices += terms.Millidevices(demand(one))
		for k, amount := range one.Resources {
			t.resources[k] += amount
		}
	}
}

// growth returns how much more of a node's devices is stranded with an instance of a task, in thousandths, and how much
// more is useless to the typical instances, added up over all of them.
func (g *Gaps) growth(node *cluster.Node, spec *terms.Task, free terms.Resources) (stranded, useless int64) {
	rest := free.Minus(spec.Resources)
	for _, offer := range node.Offer.Devices {
		t := g.of(offer.Kind)
		if t == nil {
			continue
		}
		g.look(node, offer)
		strandedBefore, uselessBefore := t.stranded(g.free, &free), t.useless(g.free, offer.Model)
		for i := range spec.Devices {
			if spec.Devices[i].Kind == offer.Kind {
				g.take(&spec.Devices[i])
			}
		}
		stranded += t.stranded(g.free, &rest) - strandedBefore
		useless += t.useless(g.free, offer.Model) - uselessBefore
	}
	return stranded, useless
}

// look notes what is left of the devices of a kind.
func (g *Gaps) look(node *cluster.Node, offer terms.DeviceOffer) {
	g.free = g.free[:0]
	for range offer.Count {
		g.free = append(g.free, terms.WholeDevice)
	}
	node.EachDeviceInUse(offer.Kind, func(number uint32, used terms.Millidevices) {
		if number < offer.Count {
			g.free[number] -= used
		}
	})
}

// take takes what a request gets: the device with the least left for a share, or whole devices.
func (g *Gaps) take(q *terms.DeviceRequest) {
	for wanted := q.Amount; wanted > 0; {
		best := -1
		for i, left := range g.free {
			if left >= min(q.Amount, terms.WholeDevice) && (best < 0 || left < g.free[best]) {
				best = i
			}
		}
		part := min(wanted, terms.WholeDevice)
		g.free[best] -= part
		wanted -= part
	}
}

// stranded returns how much of the devices is more than goes, in the mean, with what else is left.
func (t *typical) stranded(devices []terms.Millidevices, free *terms.Resources) int64 {
	left := total(devices)
	most := left
	for k, all := range t.resources {
		if all > 0 {
			most = min(most, mulDiv(max(free[k], 0), int64(t.devices), all))
		}
	}
	return left - most
}

// mulDiv returns a * b / c, rounded down.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(min(quotient, math.MaxInt64))
}

// useless adds up what is left of devices of a model and of no use to each typical instance.
func (t *typical) useless(devices []terms.Millidevices, model string) int64 {
	use, whole, pieces := int64(0), int64(0), t.piecesOf(model)
	for _, left := range devices {
		if pieces.use[left] < 0 {
			pieces.use[left] = t.use(left, model)
		}
		use += pieces.use[left]
		if left == terms.WholeDevice {
			whole += int64(left)
		}
	}
	for i := range t.shapes {
		if q := &t.shapes[i].Request; !q.Share() && q.Takes(model) {
			use += whole / int64(q.Amount) * int64(q.Amount) * int64(t.shapes[i].Instances)
		}
	}
	return total(devices)*t.instances - use
}

func (t *typical) piecesOf(model string) *pieces {
	for _, p := range t.pieces {
		if p.model == model {
			return p
		}
	}
	p := &pieces{model: model}
	for i := range p.use {
		p.use[i] = -1
	}
	t.pieces = append(t.pieces, p)
	return p
}

// use returns of how much use what is left of a device is to the typical instances that ask for a share, added up.
func (t *typical) use(left terms.Millidevices, model string) (use int64) {
	for i := range t.shapes {
		if q := &t.shapes[i].Request; q.Share() && q.Takes(model) {
			use += int64(left/q.Amount*q.Amount) * int64(t.shapes[i].Instances)
		}
	}
	return use
}

func total(devices []terms.Millidevices) (sum int64) {
	for _, left := range devices {
		sum += int64(left)
	}
	return sum
}
