package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/terms"
	"starling/terms/fingerprint"
)

// The books: every change of a node, a job or a slot goes through here, so that rows, counts, room and digest agree.

// Node returns a node by its number.
func (s *State) Node(n facts.NodeIndex) *Node { return s.nodes.At(int(n)) }

// Nodes returns how many nodes have ever written; their numbers are all below that.
func (s *State) Nodes() int { return s.nodes.Len() }

// NodeOf returns the node with the given name, nil if it never wrote.
func (s *State) NodeOf(name terms.NodeName) *Node {
	n, ok := s.nodeNames.Get(name)
	if !ok {
		return nil
	}
	return s.Node(n)
}

// EnsureNode returns the node with the given name for reading, and makes it if it never wrote.
func (s *State) EnsureNode(name terms.NodeName) *Node {
	if n := s.NodeOf(name); n != nil {
		return n
	}
	assert(s.nodes.Len() == s.nodeNames.Len(), "each node has one name")
	n := &Node{edition: s.edition, Index: facts.NodeIndex(s.nodes.Len()), Node: facts.Node{Name: name}}
	s.nodes.Resize(s.edition, s.nodes.Len()+1)
	s.nodes.Set(s.edition, int(n.Index), n)
	s.nodeNames.Set(name, n.Index)
	n.row = n.hash()
	s.digest += n.row
	return n
}

// editNode returns the node for changing; changeNode counts what the digest covers.
func (s *State) editNode(n facts.NodeIndex) *Node {
	s.visited++
	row := s.nodes.At(int(n))
	if row.edition != s.edition {
		clone := *row
		clone.edition = s.edition
		clone.Sessions = append([]facts.Session(nil), row.Sessions...)
		clone.Held = append(make([]facts.SlotRef, 0, len(row.Held)+8), row.Held...)
		clone.Ports = append([]facts.PortUse(nil), row.Ports...)
		clone.Devices = append([]facts.DeviceUse(nil), row.Devices...)
		row = &clone
		s.nodes.Set(s.edition, int(n), row)
	}
	return row
}

// changeNode applies change to the node and counts the digest.
func (s *State) changeNode(n facts.NodeIndex, change func(*Node)) {
	row := s.editNode(n)
	change(row)
	s.digest -= row.row
	row.row = row.hash()
	s.digest += row.row
}

// Wrote notes that an entry of the incarnation was taken. Seq must be above the last.
func (s *State) Wrote(n facts.NodeIndex, incarnation uint32, seq uint64) {
	s.changeNode(n, func(row *Node) {
		assert(incarnation > row.Departed, "who has left writes nothing")
		assert(seq >= row.LastSeq(incarnation), "the numbers of entries never fall")
		row.SetLastSeq(incarnation, seq)
	})
}

// SetPeer notes which member lives on the node, "" for none, and puts it among the members or takes it out.
func (s *State) SetPeer(n facts.NodeIndex, p terms.PeerID) {
	s.changeNode(n, func(row *Node) {
		if row.Peer != "" {
			s.RemoveMember(row.Peer)
		}
		assert(p == "" || p.Node() == row.Name, "a member lives on its own node")
		row.Peer = p
		if p != "" {
			s.AddMember(p)
		}
	})
}

// Depart sets the tombstone: incarnations up to this one have left, and none of them is joining any more.
func (s *State) Depart(n facts.NodeIndex, incarnation uint32) {
	s.changeNode(n, func(row *Node) { row.Departed = max(row.Departed, incarnation) })
	for len(s.Node(n).Sessions) > 0 && s.Node(n).Sessions[0].Incarnation <= s.Node(n).Departed {
		s.EndSession(n, s.Node(n).Sessions[0].Incarnation)
	}
}

// EndSession forgets an incarnation that is no member: what it wrote last, and its attempt to join.
func (s *State) EndSession(n facts.NodeIndex, incarnation uint32) {
	s.changeNode(n, func(row *Node) {
		row.Sessions = slices.DeleteFunc(row.Sessions, func(session facts.Session) bool { return session.Incarnation == incarnation })
	})
	s.SetAttempt(terms.NewPeerID(s.Node(n).Name, incarnation), membership.Attempt{})
}

// SetOffer replaces what the node gives; nil withdraws it. What runs there is not touched.
func (s *State) SetOffer(n facts.NodeIndex, offer *terms.Offer) {
	old := s.Node(n).Offer
	s.volunteered = s.VolunteeredWith(n, offer)
	assert(s.volunteered.Within(s.Limits.ClusterAmount), "all nodes offer no more than can be counted")
	s.changeNode(n, func(row *Node) {
		free := s.free(n)
		if row.Offer != nil {
			free = free.Minus(row.Offer.Capacity)
		}
		row.Offer, row.offerHash = offer, 0
		if offer != nil {
			free = free.Plus(offer.Capacity)
			row.offerHash = fingerprint.Offer(offer)
			row.Class = s.classOf(offer)
			s.setPurpose(n, offer.Purpose())
		}
		s.setFree(n, free, offer != nil && !row.Drain.On)
	})
	s.countGiven(n)
	if old == nil || offer == nil || old.Address != offer.Address {
		for _, r := range s.Node(n).Held {
			s.regroup(s.Job(r.Job))
		}
	}
	if old == nil || offer == nil || !slices.Equal(old.Attributes, offer.Attributes) {
		s.divisions = nil
		for _, r := range s.Node(n).Held {
			if s.Job(r.Job).Spec.Within != "" {
				s.tryAnew(r.Job) // its instances may be in another domain now
			}
		}
		s.moveHeads(n, old)
	}
}

// VolunteeredWith returns what all nodes would offer together if one offered that.
func (s *State) VolunteeredWith(n facts.NodeIndex, offer *terms.Offer) terms.Amounts {
	sum := s.volunteered
	if old := s.Node(n).Offer; old != nil {
		for k, amount := range old.Amounts() {
			sum[k] -= amount
		}
	}
	if offer != nil {
		for k, amount := range offer.Amounts() {
			sum[k] += amount
		}
	}
	return sum
}

// SetDrain begins, changes or ends the emptying of a node.
func (s *State) SetDrain(n facts.NodeIndex, drain facts.Drain) {
	r := facts.RefOfNode(n)
	s.changeNode(n, func(row *Node) {
		if row.Drain.Deadline != 0 {
			s.deadlines.Delete(due{row.Drain.Deadline, r})
		}
		if row.Drain = drain; drain.Deadline != 0 {
			s.deadlines.Set(due{drain.Deadline, r})
		}
		if s.draining.Delete(n); drain.On {
			s.draining.Insert(n)
		}
		s.setFree(n, s.free(n), row.Offer != nil && !drain.On)
	})
	s.countGiven(n)
}

// countGiven counts anew what a node gives to pools: what is held there, and what is free if it takes work.
func (s *State) countGiven(n facts.NodeIndex) {
	row := s.editNode(n)
	given := s.givenBy(row)
	for k := range given {
		s.offered[k] += given[k] - row.given[k]
	}
	s.Stirred, s.Moved = true, s.Moved || given != row.given
	assert(slices.Min(s.offered[:]) >= 0, "what is offered is not negative")
	row.given = given
}

func (s *State) givenBy(row *Node) (given terms.Amounts) {
	offered, free := terms.Amounts{}, s.Unheld(row.Index)
	if row.Offer != nil {
		offered = row.Offer.Amounts()
	}
	held := offered
	for k := range free {
		held[k] -= free[k]
	}
	for k := terms.GPU; k < terms.AmountCount; k++ {
		held[k] = 0
		row.EachDeviceInUse(k.String(), func(_ uint32, used terms.Millidevices) { held[k] += int64(used) })
	}
	for k := range given {
		given[k] = held[k]
		if s.Eligible(row.Index) {
			given[k] = max(given[k], offered[k])
		}
	}
	return given
}

// Draining returns the nodes that are being emptied, in order.
func (s *State) Draining() []facts.NodeIndex { return s.draining.Keys() }

// EachDaemon visits the daemon jobs that have not finished, oldest first, until visit returns false.
func (s *State) EachDaemon(visit func(terms.JobID) bool) { s.daemons.Scan(visit) }

// classOf numbers equal sets of attributes, but for the node's own name, of device kinds and models.
func (s *State) classOf(offer *terms.Offer) uint32 {
	var key []byte
	for _, a := range offer.Attributes {
		if a.Name == terms.NodeAttribute {
			continue
		}
		key = append(append(append(append(key, a.Name...), 0), a.Value...), 0)
	}
	key = append(key, 1)
	for _, d := range offer.Devices {
		key = append(append(append(append(key, d.Kind...), 0), d.Model...), 0)
	}
	class, ok := s.classes.Get(string(key))
	if !ok {
		class = uint32(s.classes.Len())
		s.classes.Set(string(key), class)
	}
	return class
}

// Classes returns how many different sets of attributes were ever offered; Node.Class is below that.
func (s *State) Classes() int { return s.classes.Len() }

// Job returns a job by its number, nil if it is forgotten.
func (s *State) Job(id terms.JobID) *Job {
	j, _ := s.jobs.Get(id)
	return j
}

// JobOf returns a job by its name, nil if there is none.
func (s *State) JobOf(name terms.JobName) *Job {
	id, ok := s.jobNames.Get(name)
	if !ok {
		return nil
	}
	return s.Job(id)
}

// Jobs returns how many jobs are kept.
func (s *State) Jobs() int { return s.jobs.Len() }

// OpenJobs returns how many jobs have not finished.
func (s *State) OpenJobs() int { return s.jobs.Len() - s.finished.Len() }

// EachJob visits the jobs in the order of their submission until visit returns false.
func (s *State) EachJob(visit func(*Job) bool) {
	s.jobs.Scan(func(_ terms.JobID, j *Job) bool { return visit(j) })
}

// EachJobByName visits the jobs in the order of their names, from the given one on, until visit returns false.
func (s *State) EachJobByName(from terms.JobName, visit func(*Job) bool) {
	s.jobNames.Ascend(from, func(_ terms.JobName, id terms.JobID) bool { return visit(s.Job(id)) })
}

func (s *State) editJob(id terms.JobID) *Job {
	j := s.Job(id)
	if j.edition != s.edition {
		clone := *j
		clone.edition = s.edition
		clone.Tasks = append(make([]*Task, 0, len(j.Tasks)+1), j.Tasks...)
		clone.Versions = append(make([]facts.JobVersion, 0, len(j.Versions)+1), j.Versions...)
		j = &clone
		s.jobs.Set(id, j)
	}
	return j
}

func (s *State) editTask(j *Job, task int) *Task {
	s.visited++
	t := j.Tasks[task]
	if t.edition != s.edition {
		clone := *t
		clone.edition = s.edition
		shared := *t.returned // its Copy marks what it copies, and that others may be reading
		clone.returned, clone.rare = shared.Copy(), t.rare.copy()
		t = &clone
		j.Tasks[task] = t
	}
	return t
}

// changeJob applies change to the job and counts the digest.
func (s *State) changeJob(id terms.JobID, change func(*Job)) {
	j := s.editJob(id)
	change(j)
	s.countJob(j)
	s.Stirred = s.Stirred || j.Spec.Shares() // a job that stops, or is suspended, takes no virtual peers
}

// countJob counts the job's row in the digest.
func (s *State) countJob(j *Job) {
	s.digest -= j.row
	j.row = j.Hash()
	s.digest += j.row
}

// changeTask applies change to the task and counts the digest.
func (s *State) changeTask(id terms.JobID, task int, change func(*Task)) {
	t := s.editTask(s.editJob(id), task)
	change(t)
	s.digest -= t.row
	t.row = t.hash(id, task)
	s.digest += t.row
}

func (n *Node) hash() uint64 { return n.Node.Hash(n.Index, n.offerHash) }

// hash covers the task's row; its slots are counted in its digest.
func (t *Task) hash(id terms.JobID, task int) uint64 {
	return t.Task.Hash(facts.KeyOf(id, task), t.Slots.Len(), t.nameHash, t.failureHash)
}
