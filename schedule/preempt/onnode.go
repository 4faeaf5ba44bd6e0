package preempt

import "slices"

// OnNode returns who gives way to one instance of the first want, which can run only on the first node: of all who could, those
// without whom it does not fit, least valuable first; nobody if it fits as it is, or not even with all of them gone. Amounts are
// counted here; fits says of a plan whether the rest would do. Members of gangs are spared before all others; if a gang breaks
// all of it goes, wherever it runs.
func OnNode(in *Input, fits func(*Plan) bool) Plan {
	c := &onNode{in: in, gone: make([]bool, len(in.Victims)), fits: fits}
	for i := range in.Victims {
		if in.Victims[i].Node == in.Nodes[0].Index {
			c.gone[i], c.local = true, append(c.local, i)
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
	slices.SortStableFunc(plan.Victims, func(a, b Chosen) int { return compareVictims(&in.Victims[a.Victim], &in.Victims[b.Victim]) })
	return plan
}

type onNode struct {
	in   *Input
	fits func(*Plan) bool
	// local are those on the node, most valuable first.
	local []int
	gone  []bool
}

// plan is that of all who are gone.
func (c *onNode) plan() Plan {
	plan := Plan{Seats: []Seat{{Node: c.in.Nodes[0].Index, Count: 1}}}
	for i, gone := range c.gone {
		if gone {
			plan.Victims = append(plan.Victims, Chosen{Victim: i, Rule: ByDaemon})
		}
	}
	return plan
}

// does tells whether the instance fits without those who are gone.
func (c *onNode) does() bool {
	room := c.in.Nodes[0].Free
	for _, i := range c.local {
		if c.gone[i] {
			room.Add(&c.in.Victims[i].Need, 1)
		}
	}
	plan := c.plan()
	return fits(&c.in.Wants[0].Need, &room) && c.fits(&plan)
}

// spare keeps the members of a gang without whom it fits as well.
func (c *onNode) spare(gang int) {
	for _, i := range c.local {
		if c.in.Victims[i].Gang == gang {
			c.gone[i] = false
			c.gone[i] = !c.does()
		}
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
	for i, v := range c.in.Victims {
		c.gone[i] = c.gone[i] || broken && v.Gang == id
	}
}
