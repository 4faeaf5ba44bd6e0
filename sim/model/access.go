package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/sim/model/known"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// may tells whether somebody may have a command obeyed.
func (m *Model) may(who access.Subject, c command.Command) bool {
	a := known.Ask{Who: who, Command: c, Rules: m.rules, Time: m.time}
	return m.known.MayKeep(a, m.pools) && m.known.MayAsk(a, m.keptOf, m.pools)
}

// keptOf lists the kept versions of a job that has not finished, and those of any.
func (m *Model) keptOf(name terms.JobName) (ofOpen, ofAny []facts.JobVersion) {
	if j := m.jobOf(name); j != nil && j.finished != 0 {
		return nil, j.versions
	} else if j != nil {
		return j.versions, j.versions
	}
	return nil, nil
}

// actAccess applies a command about who is known, or that only lets time pass.
func (m *Model) actAccess(author terms.PeerID, c command.Command) bool {
	node := terms.NodeName("")
	switch c := c.(type) {
	case *command.PassTime:
		m.time += terms.Time(c.Millis)
		m.volumes.Now = m.time
		return true
	case *command.RemoveNode:
		return m.remove(c)
	case *command.AdmitNode:
		node = c.Node
	}
	n := m.nodeOf(node)
	has := n != nil && (n.Peer != "" || m.rules >= rules.NewMachines && slices.ContainsFunc(m.on(n), (*seat).mayLive))
	return m.known.Obey(c, known.Around{Author: author, Members: m.Ring, Pools: m.pools, Time: m.time, IsTaken: has,
		Rules: m.rules, Open: m.open})
}

// open lists the versions to which instances may come back, of all jobs that have not finished.
func (m *Model) open() (all []facts.JobVersion) {
	for _, j := range m.Jobs {
		if j.finished == 0 {
			all = append(all, j.versions...)
		}
	}
	return all
}

// remove takes a node out, with all of its lives.
func (m *Model) remove(c *command.RemoveNode) bool {
	name, node := c.Node, m.nodeOf(c.Node)
	if m.known.IsGone(name) {
		return m.isOff(c, node)
	}
	if node == nil && !m.known.Knows(name) || node != nil && node.Peer != "" && len(m.Ring) == 1 {
		return false
	}
	for life := uint32(1); node != nil && len(node.written) > 0; life++ {
		if node.written[life] > 0 {
			m.leave(terms.NewPeerID(name, life))
			delete(node.written, life)
		}
	}
	m.known.Remove(name)
	m.isOff(c, node)
	return true
}

// isOff ends the wait for what ran on a node that is off, and tells whether there was any.
func (m *Model) isOff(c *command.RemoveNode, node *Node) (waited bool) {
	for i := 0; c.IsOff && node != nil && i < len(m.on(node)); i++ {
		if s := m.on(node)[i]; s.mayLive() {
			s.Deadline, waited = m.time, true
		}
	}
	return waited
}
