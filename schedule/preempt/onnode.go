package preempt

import (
	"slices"

	"starling/terms"
)

// OnNode returns what gives way to one instance of the first want, which can run only on the first node: of all that
// could, those without which it does not fit, least valuable first; none if it fits as it is, or not even with all of
// them gone. Amounts are counted here; fits, unless nil, says of a plan whether the rest would do. Members of gangs are
// spared before all others; if a gang breaks all of it goes, wherever it runs.
func OnNode(in *Input, fits func(*Plan) bool) Plan {
	c := &onNode{in: in, gone: make([]bool, len(in.Victims)), fits: fits, room: in.Nodes[0].Free}
	for i := range in.Victims {
		if in.Victims[i].Node == in.Nodes[0].Index {
			c.local = append(c.local, i)
			c.mark(i, true)
		}
	}
	if most := in.Wants[0].Most; most != nil && most(in.Nodes[0].Index) == 0 || !c.does() {
		return Plan{}
	}
	slices.SortStableFunc(c.local, func(a, b int) int { return compareVictims(&in.Victims[b], &in.Victims[a]) })
	var seen []int
	for _, i := range c.local {
		if id := in.Victims[i].Gang; id != NoGang && !slices.Contains(seen, id) {
			seen = append(seen, id)
			c.spare(id)
			c.breakUp(id)
		}
	}
	c.spare(NoGang)
	plan := c.plan()
	slices.SortStableFunc(plan.Victims,
		func(a, b Chosen) int { return compareVictims(&in.Victims[a.Victim], &in.Victims[b.Victim]) })
	return plan
}

type onNode struct {
	in   *Input
	fits func(*Plan) bool
	// local are those on the node, most valuable first.
	local []int
	gone  []bool
	// room is what the node has left without those that are gone.
	room terms.Amounts
}

// mark lets a victim go, or keeps it.
func (c *onNode) mark(i int, goes bool) {
	if v := &c.in.Victims[i]; v.Node == c.in.Nodes[0].Index && c.gone[i] != goes {
		times := int64(1)
		if !goes {
			times = -1
		}
		c.room.Add(&v.Need, times)
	}
	c.gone[i] = goes
}

// plan is that of all that are gone.
func (c *onNode) plan() Plan {
	plan := Plan{Seats: []Seat{{Node: c.in.Nodes[0].Index, Count: 1}}}
	for i, gone := range c.gone {
		if gone {
			plan.Victims = append(plan.Victims, Chosen{Victim: i, Rule: ByDaemon})
		}
	}
	return plan
}

// does tells whether the instance fits without those that are gone.
func (c *onNode) does() bool {
	if !fits(&c.in.Wants[0].Need, &c.room) {
		return false
	}
	if c.fits == nil {
		return true
	}
	plan := c.plan()
	return c.fits(&plan)
}

// spare keeps the members of a gang without which it fits as well.
func (c *onNode) spare(gang int) {
	c.spareOf(slices.DeleteFunc(slices.Clone(c.local), func(i int) bool { return c.in.Victims[i].Gang != gang }))
}

// spareOf keeps, in their order, those without which it fits as well. All at once are tried first, and then each half:
// those that must go are mostly few, and a try is a copy of the value of its own.
func (c *onNode) spareOf(some []int) {
	for _, i := range some {
		c.mark(i, false)
	}
	if len(some) == 0 || c.does() {
		return
	}
	for _, i := range some {
		c.mark(i, true)
	}
	if half := len(some) / 2; half > 0 {
		c.spareOf(some[:half])
		c.spareOf(some[half:])
	}
}

// breakUp lets all members of a gang go if more go than it can lose.
func (c *onNode) breakUp(id int) {
	lost, broken := make([]uint32, len(c.in.Gangs[id].Surplus)), false
	for i, v := range c.in.Victims {
		if v.Gang == id && c.gone[i] {
			lost[v.Slot.Task]++
			broken = broken || lost[v.Slot.Task] > c.in.Gangs[id].Surplus[v.Slot.Task]
		}
	}
	for i := range c.in.Victims {
		if broken && c.in.Victims[i].Gang == id {
			c.mark(i, true)
		}
	}
}
