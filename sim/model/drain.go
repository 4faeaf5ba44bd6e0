package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/reconcile"
	"starling/terms"
)

// drainNode moves what a node runs to others, or takes that back.
func (m *Model) drainNode(c *command.DrainNode) bool {
	node := m.nodeOf(c.Node)
	if node == nil {
		return false
	}
	node.drain = facts.Drain{On: c.Drain}
	for _, s := range m.on(node) {
		s.job().touched = true
	}
	if c.Drain {
		node.drain.Deadline = m.time + terms.Time(c.DeadlineMillis)
		m.drainDue(node)
	}
	m.daemonsOf(node)
	return true
}

// drainDue ends whatever still runs on a drained node when its deadline has passed.
func (m *Model) drainDue(n *Node) {
	if !n.drain.On || n.drain.Deadline > m.time {
		return
	}
	n.drain.Deadline = 0
	for _, s := range besideFirst(m.on(n)) {
		m.leaveNode(s)
	}
}

func (m *Model) leaveNode(s *seat) {
	if s.Phase != facts.Stopping && s.Phase != facts.Unknown {
		m.settle(s, s.Slot, func(c *reconcile.Candidate) { c.Migrate = true })
	}
}

// drains moves from drained nodes what its jobs can spare and others have room for. Batch work may end by itself, what
// has volumes stays, and daemons stay as long as anything else is there; after the deadline nothing does.
func (m *Model) drains() {
	var leaving []*seat
	trial, spare := &succession{m: m}, map[*task]uint32{}
	for _, j := range m.Jobs {
		for _, t := range j.tasks {
			spare[t] = t.spare(max(j.newest().Update.BatchSize, 1))
		}
	}
	for _, n := range m.Nodes {
		for _, s := range besideFirst(m.on(n)) {
			if n.drain.On && (n.drain.Deadline == 0 || m.mayLeave(s, trial, spare)) {
				leaving = append(leaving, s)
			}
		}
	}
	trial.undo()
	for _, s := range besideFirst(leaving) {
		m.leaveNode(s)
	}
	for _, n := range m.Nodes {
		if n.drain.On {
			m.emptied(n)
		}
	}
}

// mayLeave tells whether a seat is given up before the deadline.
func (m *Model) mayLeave(s *seat, trial *succession, spare map[*task]uint32) bool {
	kind, t := s.job().newest().Type, s.slot.task
	if kind == terms.Batch || kind == terms.Daemon || s.Phase == facts.Stopping || t.tied(s.spec()) {
		return false
	}
	well := s.kind == facts.MainSeat && s.Phase == facts.Running && s.Health == facts.Healthy
	if well && spare[t] == 0 || !trial.succeeds(s) {
		return false
	}
	if well {
		spare[t]--
	}
	return true
}

// emptied ends the daemons of a drained node on which nothing else is left.
func (m *Model) emptied(n *Node) {
	all := m.on(n)
	if slices.ContainsFunc(all, func(s *seat) bool { return s.job().newest().Type != terms.Daemon }) {
		return
	}
	for _, s := range besideFirst(all) {
		m.leaveNode(s)
	}
}

// able tells whether a node can have an instance of a daemon's task.
func (m *Model) able(t *task, n *Node) bool {
	spec := t.spec(0)
	if spec == nil || !n.open() {
		return false
	}
	var rooms []*room
	for i := range spec.Constraints {
		c := &spec.Constraints[i]
		if c.Social() && rooms == nil {
			rooms = m.rooms()
		}
		if timedOut := c.Soft && m.softEnd(t, false, c) <= m.time; !timedOut && !holdsFor(spec, rooms, &room{node: n}, c) {
			return false
		}
	}
	return true
}

// daemons gives every task of a daemon job a slot for every node.
func (m *Model) daemons(j *Job) {
	for _, n := range m.Nodes {
		m.daemonOn(j, n)
	}
}

// daemonsOf gives a node its slots of all daemon jobs.
func (m *Model) daemonsOf(n *Node) {
	for _, j := range m.Jobs {
		m.daemonOn(j, n)
	}
}

// daemonOn makes a node's slots of a daemon job what they should be: empty if the node cannot have it.
func (m *Model) daemonOn(j *Job, n *Node) {
	if j.newest().Type != terms.Daemon || j.stop {
		return
	}
	for _, t := range j.tasks {
		if t.spec(0) == nil {
			continue
		}
		if t.desired <= uint32(n.number) {
			m.want(t, uint32(n.number)+1)
		}
		j.touched = true
		s := t.slots[n.number].main()
		row, able := s.Slot, m.able(t, n)
		switch {
		case row.Phase.Holds():
		case able && row.Phase != facts.Rescheduling && row.Phase != facts.Failed && row.Phase != facts.Waiting:
			m.wait(s, row, facts.OnlyNode)
		case !able && row.Phase != facts.Stopped:
			m.wait(s, row, facts.OnlyNode)
		}
	}
}
