package sim

import (
	"cmp"
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/replica"
)

// model is the fold once more, as plainly as it can be said and as slow as that is: no books, no queues, no indexes;
// whatever follows from something else is computed from it anew. It shares with the fold only the nouns and the
// commands, so that a mistake would have to be made twice.
type model struct {
	index      cluster.Index
	time       cluster.Time
	rules      uint32
	unfinished bool
	// known are the requests for devices of what had some when placement began.
	known []modelShape
	// circle is the ring: every member watches the next, the last the first; one alone watches nobody.
	circle   []cluster.PeerID
	attempts map[cluster.PeerID]cluster.Attempt
	// nodes stand at their numbers.
	nodes []*modelNode
	// jobs are kept in the order of their submission, ended in that of their ends.
	jobs, ended []*modelJob
	lastJob     cluster.JobID
	// requests are the remembered ones, oldest first.
	requests []modelRequest
	// dropped and refused tell what the last entry came to.
	dropped bool
	refused []bool
}

type modelNode struct {
	number   cluster.NodeIndex
	name     cluster.NodeName
	peer     cluster.PeerID
	departed uint32
	// written has the number of the last entry of each life that may write.
	written  map[uint32]uint64
	offer    *cluster.Offer
	portNext uint16
}

type modelRequest struct {
	id      string
	refused bool
}

func newModel() *model {
	return &model{rules: 1, attempts: map[cluster.PeerID]cluster.Attempt{}}
}

// apply folds the next entry.
func (m *model) apply(folded *replica.Folded) {
	m.index++
	m.refused = nil
	e := folded.Entry
	m.dropped = e == nil || !m.takes(e)
	if m.dropped {
		return
	}
	m.time = max(m.time, e.Time)
	restarted := m.restart()
	for _, c := range e.Commands {
		m.refused = append(m.refused, !m.obey(e.Writer, c))
		m.tidy()
	}
	m.unfinished = !m.placeAll() || !restarted
}

// takes tells whether the entry counts: it is the next of a life that has not left, and a life begins by joining.
func (m *model) takes(e *command.Entry) bool {
	name, life := e.Writer.Split()
	if life == 0 || e.Seq == 0 || cluster.NameProblem(string(name), true) != "" {
		return false
	}
	joins := false
	if len(e.Commands) > 0 {
		_, joins = e.Commands[0].(*command.PrepareJoin)
	}
	node := m.nodeOf(name)
	if node == nil && !joins {
		return false
	}
	if node == nil {
		node = &modelNode{number: cluster.NodeIndex(len(m.nodes)), name: name, written: map[uint32]uint64{}}
		m.nodes = append(m.nodes, node)
	}
	last := node.written[life]
	if life <= node.departed || e.Seq <= last || last == 0 && !joins {
		return false
	}
	node.written[life] = e.Seq
	return true
}

// obey applies one command and tells whether it was obeyed.
func (m *model) obey(writer cluster.PeerID, c command.Command) bool {
	member := slices.Contains(m.circle, writer)
	switch c := c.(type) {
	case *command.PrepareJoin:
		return writer == c.Joiner && m.prepare(c.Joiner, c.Attempt)
	case *command.NotifyJoin:
		return m.notify(writer, c)
	case *command.AcceptJoin:
		return writer == c.Joiner && m.accept(c)
	case *command.AbortJoin:
		return writer == c.Joiner && m.abort(c)
	case *command.Leave:
		return m.leave(c.Peer)
	case *command.Volunteer:
		return writer == c.Peer && member && m.volunteer(writer, c.Offer)
	case *command.SubmitJob:
		return member && m.once(c.RequestID, func() bool { return m.submit(&c.Spec) })
	case *command.KillJob:
		return member && m.once(c.RequestID, func() bool { return m.kill(c.Job) })
	case *command.ReportTasks:
		return writer == c.Peer && member && m.reports(writer, c.Reports)
	case *command.TellTime:
		return member
	case *command.RaiseRules:
		return member && m.raise(c.Version)
	}
	if c.Kind() > command.KindRaiseRules {
		return false
	}
	panic("sim: the model has no rule for a command of kind " + c.Kind().String())
}

func (m *model) nodeOf(name cluster.NodeName) *modelNode {
	for _, n := range m.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// once answers a repeated request as the first.
func (m *model) once(id string, act func() bool) bool {
	for _, r := range m.requests {
		if id != "" && r.id == id {
			return !r.refused
		}
	}
	ok := act()
	if id != "" {
		m.requests = append(m.requests, modelRequest{id, !ok})
		m.requests = m.requests[max(0, len(m.requests)-cluster.RequestsMax):]
	}
	return ok
}

func (m *model) volunteer(p cluster.PeerID, offer cluster.Offer) bool {
	if offer.Problem() != "" {
		return false
	}
	m.nodeOf(p.Node()).offer = &offer
	return true
}

func (m *model) raise(version uint32) bool {
	for _, p := range m.circle {
		if offer := m.nodeOf(p.Node()).offer; offer == nil || offer.Rules < version {
			return false
		}
	}
	if version != m.rules+1 {
		return false
	}
	m.rules = version
	return true
}

// prepare begins an attempt to join.
func (m *model) prepare(joiner cluster.PeerID, number uint32) bool {
	name, life := joiner.Split()
	node := m.nodeOf(name)
	last, tried := m.attempts[joiner]
	if life <= node.departed || node.peer == joiner || tried && last.Phase != cluster.Aborted || number != last.Number+1 {
		return false
	}
	for earlier := range node.written {
		if p := cluster.NewPeerID(name, earlier); earlier < life && p != node.peer {
			delete(node.written, earlier)
			delete(m.attempts, p)
		}
	}
	if node.peer == "" {
		m.bury(node, life-1)
	}
	if len(m.circle) == 0 {
		m.circle = []cluster.PeerID{joiner}
		m.seat(node, joiner)
		return true
	}
	if len(node.written) > livesMax {
		return false
	}
	attempt := cluster.Attempt{Number: number, Phase: cluster.Refused, Began: m.index, BeganAt: m.time}
	if free := m.observers(); node.peer == "" && len(free) > 0 {
		attempt.Phase, attempt.Observer = cluster.Prepared, free[uint64(m.index)%uint64(len(free))]
	}
	m.attempts[joiner] = attempt
	return attempt.Phase == cluster.Prepared
}

// livesMax is how many lives of one node may be known beside the one that joins.
const livesMax = 8

// observers returns the members that may take a joiner in, ordered: they take in nobody already, and whom they watch
// has prepared nobody.
func (m *model) observers() []cluster.PeerID {
	busy, prepared := map[cluster.PeerID]bool{}, map[cluster.PeerID]bool{}
	for _, a := range m.attempts {
		busy[a.Observer] = true
		if a.Phase == cluster.Prepared {
			prepared[a.Observer] = true
		}
	}
	var free []cluster.PeerID
	for i, p := range m.circle {
		if !busy[p] && !prepared[m.circle[(i+1)%len(m.circle)]] {
			free = append(free, p)
		}
	}
	slices.Sort(free)
	return free
}

// seat notes that a member lives on the node; earlier lives are over.
func (m *model) seat(node *modelNode, p cluster.PeerID) {
	_, life := p.Split()
	node.peer = p
	delete(m.attempts, p)
	m.bury(node, life-1)
}

// bury ends a node's lives up to the given one for good.
func (m *model) bury(node *modelNode, life uint32) {
	node.departed = max(node.departed, life)
	for earlier := range node.written {
		if earlier <= node.departed {
			delete(node.written, earlier)
			delete(m.attempts, cluster.NewPeerID(node.name, earlier))
		}
	}
}

func (m *model) notify(writer cluster.PeerID, c *command.NotifyJoin) bool {
	a := m.attempts[c.Joiner]
	if a.Phase != cluster.Prepared || a.Number != c.Attempt || a.Observer != writer {
		return false
	}
	a.Phase = cluster.Accepted
	m.attempts[c.Joiner] = a
	return true
}

func (m *model) accept(c *command.AcceptJoin) bool {
	a := m.attempts[c.Joiner]
	node := m.nodeOf(c.Joiner.Node())
	if a.Phase != cluster.Accepted || a.Number != c.Attempt || a.Observer != c.Observer || node.peer != "" {
		return false
	}
	m.circle = slices.Insert(m.circle, slices.Index(m.circle, a.Observer)+1, c.Joiner)
	m.seat(node, c.Joiner)
	return true
}

func (m *model) abort(c *command.AbortJoin) bool {
	a, tried := m.attempts[c.Joiner]
	if !tried || a.Number != c.Attempt || a.Phase == cluster.Aborted {
		return false
	}
	a.Phase, a.Observer = cluster.Aborted, ""
	m.attempts[c.Joiner] = a
	return true
}

// leave takes a peer out; what its node ran is lost.
func (m *model) leave(p cluster.PeerID) bool {
	at := slices.Index(m.circle, p)
	if _, tried := m.attempts[p]; at < 0 && !tried {
		return false
	}
	delete(m.attempts, p)
	name, life := p.Split()
	node := m.nodeOf(name)
	if at >= 0 {
		for joiner, a := range m.attempts {
			if a.Observer == p {
				a.Phase, a.Observer = cluster.Orphaned, ""
				m.attempts[joiner] = a
			}
		}
		m.circle = slices.Delete(m.circle, at, at+1)
		node.peer, node.offer = "", nil
		m.eachHeld(func(t *modelTask, s *modelSlot) {
			if s.Node == node.number {
				s.Ended, s.ExitCode = cluster.NodeLost, 0
				m.vacate(t, s)
			}
		})
	}
	m.bury(node, life)
	return true
}

// eachHeld visits the slots that take room, in order.
func (m *model) eachHeld(visit func(*modelTask, *modelSlot)) {
	for _, j := range m.jobs {
		for _, t := range j.tasks {
			for i := range t.slots {
				if holds(t.slots[i].Phase) {
					visit(t, &t.slots[i])
				}
			}
		}
	}
}

// tidy does after each command what follows from the state of the slots alone: slots that are not wanted and hold
// nothing are dropped from the end, and a job whose last slot ended has ended.
func (m *model) tidy() {
	for _, j := range m.jobs {
		if j.finished != 0 {
			continue
		}
		busy := !j.stop && j.newest().Type != cluster.Batch
		for _, t := range j.tasks {
			for n := len(t.slots); n > int(t.desired) && !holds(t.slots[n-1].Phase); n-- {
				t.slots = t.slots[:n-1]
			}
			for i := range t.slots {
				busy = busy || holds(t.slots[i].Phase) || t.waits(&t.slots[i])
			}
		}
		if !busy {
			j.finished, j.finishedAt = m.index, m.time
			m.ended = append(m.ended, j)
		}
	}
	for len(m.ended) > cluster.FinishedJobsMax || len(m.ended) > 1 && m.endedSlots() > cluster.FinishedSlotsMax {
		m.forget(m.ended[0])
	}
}

func (m *model) endedSlots() int {
	count := 0
	for _, j := range m.ended {
		for _, t := range j.tasks {
			count += len(t.slots)
		}
	}
	return count
}

func (m *model) forget(j *modelJob) {
	m.jobs = slices.DeleteFunc(m.jobs, func(one *modelJob) bool { return one == j })
	m.ended = slices.DeleteFunc(m.ended, func(one *modelJob) bool { return one == j })
}

// restart starts the slots whose delay is over, and tells whether it reached all.
func (m *model) restart() bool {
	var due []*modelSlot
	m.eachHeld(func(_ *modelTask, s *modelSlot) {
		if s.Phase == cluster.Delayed && s.Deadline <= m.time {
			due = append(due, s)
		}
	})
	slices.SortStableFunc(due, func(a, b *modelSlot) int { return cmp.Compare(a.Deadline, b.Deadline) })
	for _, s := range due[:min(len(due), placementsMax)] {
		s.Phase, s.Deadline, s.Order, s.Since = cluster.Assigned, 0, m.index, m.time
	}
	return len(due) < placementsMax
}
