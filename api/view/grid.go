package view

import (
	"slices"
	"strings"

	starlingv1 "starling/api/v1"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// gridKind is what instances of a grid have in common.
type gridKind struct {
	task    uint16
	seat    facts.Seat
	version uint32
	phase   facts.Phase
	health  string
}

// Grid says in short how all instances of a job stand, nil if it was not asked for.
func Grid(state *cluster.State, j *workload.Job, asked bool) *starlingv1.Grid {
	if !asked {
		return nil
	}
	g := &gridding{state: state, job: j, grid: &starlingv1.Grid{}, kinds: map[gridKind]uint32{},
		nodes: map[facts.NodeIndex]uint32{}}
	for number, t := range j.Tasks {
		r := facts.SlotRef{Job: j.ID, Task: uint16(number)}
		for ; int(r.Index) < t.Slots.Len(); r.Index++ {
			for _, r.Seat = range []facts.Seat{facts.MainSeat, facts.CanarySeat, facts.UnknownSeat} {
				g.add(r)
			}
		}
	}
	return g.grid
}

// gridding is a grid that is being made.
type gridding struct {
	state *cluster.State
	job   *workload.Job
	grid  *starlingv1.Grid
	kinds map[gridKind]uint32
	nodes map[facts.NodeIndex]uint32
}

// add adds what is in a seat; there is always a main one.
func (g *gridding) add(r facts.SlotRef) {
	slot, taken := g.state.SlotAt(r)
	if !taken && r.Seat != facts.MainSeat {
		return
	}
	kind := gridKind{r.Task, r.Seat, slot.Version, slot.Phase, healthOf(g.job, r, &slot)}
	number, known := g.kinds[kind]
	if !known {
		number = uint32(len(g.kinds))
		g.kinds[kind] = number
		g.grid.Kinds = append(g.grid.Kinds, &starlingv1.Slot{Task: string(g.job.Tasks[r.Task].Name),
			Phase: slot.Phase.String(), Health: kind.health, Version: slot.Version, Seat: r.Seat.String()})
	}
	g.grid.Numbers, g.grid.Kind = append(g.grid.Numbers, r.Index), append(g.grid.Kind, number)
	g.grid.Node = append(g.grid.Node, g.nodeOf(&slot))
}

// nodeOf returns the position of the node of a slot, 0 if it has none.
func (g *gridding) nodeOf(slot *facts.Slot) uint32 {
	if slot.Order == 0 {
		return 0
	}
	at := g.nodes[slot.Node]
	if at == 0 {
		g.grid.Nodes = append(g.grid.Nodes, string(g.state.Node(slot.Node).Name))
		at = uint32(len(g.grid.Nodes))
		g.nodes[slot.Node] = at
	}
	return at
}

// OnNode counts what is on a node by jobs, and tells of the first of them.
func OnNode(state *cluster.State, node *cluster.Node, m *starlingv1.Peer, jobsMax int) {
	jobs := map[terms.JobID]*starlingv1.JobOnNode{}
	all := []*starlingv1.JobOnNode{}
	for _, r := range node.Held {
		one := jobs[r.Job]
		if one == nil {
			one = &starlingv1.JobOnNode{Job: string(state.Job(r.Job).Name())}
			jobs[r.Job] = one
			all = append(all, one)
		}
		if slot, _ := state.SlotAt(r); slot.Phase == facts.Running {
			one.Running++
			m.Running++
		} else {
			one.Other++
		}
	}
	slices.SortFunc(all, func(a, b *starlingv1.JobOnNode) int { return strings.Compare(a.GetJob(), b.GetJob()) })
	m.Jobs, m.JobCount = all[:min(len(all), jobsMax)], uint32(len(all))
}
