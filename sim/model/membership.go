package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/command"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/rules"
)

func (m *Model) volunteer(p terms.PeerID, offer terms.Offer) bool {
	node := m.nodeOf(p.Node())
	if offer.Problem() != "" || offer.AwayUntil > m.time+terms.AwayMillisMax || m.offersTooMuch(node, &offer) {
		return false
	}
	if node.offer = &offer; offer.AwayUntil != 0 {
		reading.Orphan(m.Attempts, p)
	}
	m.daemonsOf(node)
	return true
}

func (m *Model) raise(version rules.Number) bool {
	if version == m.rules {
		return true
	}
	for _, p := range m.Ring {
		if offer := m.nodeOf(p.Node()).offer; offer == nil || offer.Rules < version {
			return false
		}
	}
	if version != m.rules+1 {
		return false
	}
	m.raised = version
	return true
}

// crowded tells whether a node has as many lives as it may that do not end when another begins.
func (m *Model) crowded(node *Node, life uint32) bool {
	later := uint32(0)
	for other := range node.written {
		if other > life || terms.NewPeerID(node.Name, other) == node.Peer {
			later++
		}
	}
	return later >= m.limits.Lives
}

// begins begins an attempt to join. Of a new life nothing is known unless its attempt is.
func (m *Model) begins(joiner terms.PeerID, number uint32) bool {
	ok := m.prepare(joiner, number)
	if _, tries := m.Attempts[joiner]; tries || slices.Contains(m.Ring, joiner) {
		_, life := joiner.Split()
		m.nodeOf(joiner.Node()).written[life] = m.number
	}
	return ok
}

// endEarlier ends the lives before one that begins, but for the member.
func (m *Model) endEarlier(node *Node, life uint32) {
	for earlier := range node.written {
		if p := terms.NewPeerID(node.Name, earlier); earlier < life && p != node.Peer {
			delete(node.written, earlier)
			delete(m.Attempts, p)
		}
	}
	if node.Peer == "" {
		m.bury(node, life-1)
	}
}

// prepare begins an attempt to join.
func (m *Model) prepare(joiner terms.PeerID, number uint32) bool {
	name, life := joiner.Split()
	node := m.nodeOf(name)
	last, tried := m.Attempts[joiner]
	if tried && last.Phase != membership.Aborted || number != last.Number+1 {
		return false
	}
	if node == nil {
		if len(m.Nodes) >= int(m.limits.Nodes) {
			return false
		}
		node = &Node{number: facts.NodeIndex(len(m.Nodes)), Name: name, written: map[uint32]uint64{}}
		m.Nodes = append(m.Nodes, node)
	}
	if life <= node.Departed || node.Peer == joiner || !tried && m.crowded(node, life) {
		return false
	}
	m.endEarlier(node, life)
	if len(m.Ring) == 0 {
		m.Ring = []terms.PeerID{joiner}
		m.seat(node, joiner)
		return true
	}
	attempt := membership.Attempt{Number: number, Phase: membership.Refused, Began: m.index, BeganAt: m.time}
	if free := m.observers(); node.Peer == "" && len(free) > 0 {
		offer := func(p terms.PeerID) *terms.Offer { return m.nodeOf(p.Node()).offer }
		attempt.Phase, attempt.Observer = membership.Prepared, reading.Choose(free, uint64(m.index), offer)
	}
	m.Attempts[joiner] = attempt
	return attempt.Phase == membership.Prepared
}

// observers returns the members that may take a joiner in, ordered: they take in nobody already, and whom they watch
// has prepared nobody.
func (m *Model) observers() []terms.PeerID {
	busy, prepared := map[terms.PeerID]bool{}, map[terms.PeerID]bool{}
	for _, a := range m.Attempts {
		busy[a.Observer] = true
		if a.Phase == membership.Prepared {
			prepared[a.Observer] = true
		}
	}
	var free []terms.PeerID
	for i, p := range m.Ring {
		if !busy[p] && !prepared[m.Ring[(i+1)%len(m.Ring)]] {
			free = append(free, p)
		}
	}
	slices.Sort(free)
	return free
}

// seat notes that a member lives on the node; earlier lives are over.
func (m *Model) seat(node *Node, p terms.PeerID) {
	_, life := p.Split()
	node.Peer = p
	delete(m.Attempts, p)
	m.bury(node, life-1)
}

// bury ends a node's lives up to the given one for good.
func (m *Model) bury(node *Node, life uint32) {
	node.Departed = max(node.Departed, life)
	for earlier := range node.written {
		if earlier <= node.Departed {
			delete(node.written, earlier)
			delete(m.Attempts, terms.NewPeerID(node.Name, earlier))
		}
	}
}

func (m *Model) notify(writer terms.PeerID, c *command.NotifyJoin) bool {
	a := m.Attempts[c.Joiner]
	if a.Phase != membership.Prepared || a.Number != c.Attempt || a.Observer != writer {
		return false
	}
	a.Phase = membership.Accepted
	m.Attempts[c.Joiner] = a
	return true
}

func (m *Model) accept(c *command.AcceptJoin) bool {
	a := m.Attempts[c.Joiner]
	node := m.nodeOf(c.Joiner.Node())
	if a.Phase != membership.Accepted || a.Number != c.Attempt || a.Observer != c.Observer || node.Peer != "" {
		return false
	}
	m.Ring = slices.Insert(m.Ring, slices.Index(m.Ring, a.Observer)+1, c.Joiner)
	m.seat(node, c.Joiner)
	return true
}

func (m *Model) abort(c *command.AbortJoin) bool {
	a, tried := m.Attempts[c.Joiner]
	if !tried || a.Number != c.Attempt || a.Phase == membership.Aborted {
		return false
	}
	a.Phase, a.Observer = membership.Aborted, ""
	m.Attempts[c.Joiner] = a
	return true
}

// away tells whether a peer is away with notice, and its node not back under another life.
func (m *Model) away(p terms.PeerID) bool {
	name, life := p.Split()
	node := m.nodeOf(name)
	return node != nil && node.Peer == p && reading.Away(node.offer, m.time, node.written, life)
}

// leave takes a peer out; what its node ran is lost.
func (m *Model) leave(p terms.PeerID) bool {
	at := slices.Index(m.Ring, p)
	if _, tried := m.Attempts[p]; at < 0 && !tried {
		return false
	}
	delete(m.Attempts, p)
	name, life := p.Split()
	node := m.nodeOf(name)
	if at >= 0 {
		reading.Orphan(m.Attempts, p)
		m.Ring = slices.Delete(m.Ring, at, at+1)
		node.Peer = ""
	}
	if _, lives := node.Peer.Split(); lives > 0 && lives < life {
		return true
	}
	m.bury(node, life)
	if node.Peer == "" {
		m.lost(node)
	}
	return true
}

// lost gives what a node without a peer ran to others.
func (m *Model) lost(node *Node) {
	node.offer = nil
	for _, s := range besideFirst(m.on(node)) {
		m.lose(s)
	}
	for _, j := range m.Jobs {
		m.loseOutputs(j)
	}
	m.daemonsOf(node)
}
