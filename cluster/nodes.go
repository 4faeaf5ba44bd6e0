package cluster

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/cluster/vector"
	"starling/terms"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// Node is a machine as it stands in the value: its facts, and what follows from them and from the slots. Only the
// methods of State change it.
type Node struct {
	epoch *vector.Epoch
	Index facts.NodeIndex
	facts.Node
	// Class numbers the nodes with equal attributes and devices.
	Class uint32
	// Held are the slots that take room here, in no order.
	Held []facts.SlotRef
	// lasting is what services hold here, which do not end by themselves.
	lasting terms.Resources
	// nominated is kept for work that waits.
	nominated terms.Amounts
	// given is what the node adds to what pools divide.
	given terms.Amounts
	// offerHash is that of the offer, row what the node's row adds to the digest of the value.
	offerHash, row uint64
}

// Nominated returns what of a node is kept for work that waits.
func (n *Node) Nominated() terms.Amounts { return n.nominated }

// DeviceTimes returns for how many instances with the request the node has devices left, at most most.
func (n *Node) DeviceTimes(q *terms.DeviceRequest, most uint32) uint32 {
	offer := n.DeviceOf(q.Kind)
	if !q.Takes(offer.Model) {
		return 0
	}
	unused, shares, rest := offer.Count, uint32(0), int64(0)
	n.EachDeviceInUse(q.Kind, func(number uint32, used terms.Millidevices) {
		if number < offer.Count || q.Kind == terms.VirtualPeers.String() { // of these only the number of them counts
			unused -= min(unused, 1)
			shares += uint32((terms.WholeDevice - used) / q.Amount)
			rest += int64(terms.WholeDevice - used)
		}
	})
	if k, ok := terms.DeviceKind(q.Kind); ok {
		// What is kept for others is taken from the devices that are free, and then from what is left of the others.
		whole := min(unused, uint32((n.nominated[k]+int64(terms.WholeDevice)-1)/int64(terms.WholeDevice)))
		rest -= max(n.nominated[k]-int64(whole)*int64(terms.WholeDevice), 0)
		unused, shares = unused-whole, min(shares, uint32(max(rest, 0)/int64(q.Amount)))
	}
	if q.Share() {
		return min(most, shares+unused*uint32(terms.WholeDevice/q.Amount))
	}
	return min(most, unused/uint32(q.Amount/terms.WholeDevice))
}

// rename notes that what a seat holds here another seat holds now.
func (n *Node) rename(from, to facts.SlotRef) {
	for i := range n.Held {
		if n.Held[i] == from {
			n.Held[i] = to
		}
	}
	n.Rename(from, to)
}

func (n *Node) hash() uint64 { return n.Node.Hash(n.Index, n.offerHash) }

// Node returns a node by its number.
func (s *State) Node(n facts.NodeIndex) *Node { return s.nodes.At(int(n)) }

// Nodes returns how many nodes have ever written; their numbers are all below that.
func (s *State) Nodes() int { return s.nodes.Len() }

// EachNodeSince visits the nodes with other rows than in an earlier value, of which s is a copy that was changed.
func (s *State) EachNodeSince(old *State, visit func(facts.NodeIndex)) {
	s.nodes.EachSince(&old.nodes, func(i int) {
		if i >= old.nodes.Len() || s.nodes.At(i) != old.nodes.At(i) {
			visit(facts.NodeIndex(i))
		}
	})
}

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
	facts.Assert(s.nodes.Len() == s.nodeNames.Len(), "each node has one name")
	n := &Node{epoch: s.epoch, Index: facts.NodeIndex(s.nodes.Len()), Node: facts.Node{Name: name}}
	s.nodes.Resize(s.epoch, s.nodes.Len()+1)
	s.nodes.Set(s.epoch, int(n.Index), n)
	s.nodeNames.Set(name, n.Index)
	n.row = n.hash()
	s.digest += n.row
	return n
}

// editNode returns the node for changing; changeNode counts what the digest covers.
func (s *State) editNode(n facts.NodeIndex) *Node {
	s.visited++
	row := s.nodes.At(int(n))
	if row.epoch != s.epoch {
		clone := *row
		clone.epoch = s.epoch
		clone.Sessions = append([]facts.Session(nil), row.Sessions...)
		clone.Held = append(make([]facts.SlotRef, 0, len(row.Held)+8), row.Held...)
		clone.Ports = append([]facts.PortUse(nil), row.Ports...)
		clone.Devices = append([]facts.DeviceUse(nil), row.Devices...)
		row = &clone
		s.nodes.Set(s.epoch, int(n), row)
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
		facts.Assert(incarnation > row.Departed, "who has left writes nothing")
		facts.Assert(seq >= row.LastSeq(incarnation), "the numbers of entries never fall")
		row.SetLastSeq(incarnation, seq)
	})
}

// SetPeer notes which member lives on the node, "" for none, and puts it among the members or takes it out.
func (s *State) SetPeer(n facts.NodeIndex, p terms.PeerID) {
	s.changeNode(n, func(row *Node) {
		if row.Peer != "" {
			s.RemoveMember(row.Peer)
		}
		facts.Assert(p == "" || p.Node() == row.Name, "a member lives on its own node")
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
		row.Sessions = slices.DeleteFunc(row.Sessions,
			func(session facts.Session) bool { return session.Incarnation == incarnation })
	})
	s.SetAttempt(terms.NewPeerID(s.Node(n).Name, incarnation), membership.Attempt{})
}

// SetOffer replaces what the node gives; nil withdraws it. What runs there is not touched.
func (s *State) SetOffer(n facts.NodeIndex, offer *terms.Offer) {
	old := s.Node(n).Offer
	s.offerChanges++
	s.volunteered = s.VolunteeredWith(n, offer)
	facts.Assert(s.volunteered.Within(s.Limits.ClusterAmount), "all nodes offer no more than can be counted")
	s.changeNode(n, func(row *Node) {
		free := s.Free(n)
		if row.Offer != nil {
			free = free.Minus(row.Offer.Capacity)
		}
		row.Offer, row.offerHash = offer, 0
		if offer != nil {
			free = free.Plus(offer.Capacity)
			row.offerHash, row.Class = fingerprint.Offer(offer), s.classOf(offer)
			s.rooms.SetPurpose(s.epoch, n, offer.Purpose(s.Rules))
		}
		s.setFree(n, free, offer.Open() && !row.Drain.On)
	})
	s.doubts.Offers(offer.Less(old))
	s.countGiven(n)
	if old == nil || offer == nil || old.Address != offer.Address {
		for _, r := range s.Node(n).Held {
			s.markRosterDirty(s.Job(r.Job))
		}
	}
	if old == nil || offer == nil || !slices.Equal(old.Attributes, offer.Attributes) {
		s.divisions = nil
		for _, r := range s.Node(n).Held {
			if s.Job(r.Job).Spec.Within != "" {
				s.tryAnew(r.Job) // its instances may be in another domain now
			}
		}
		s.moveCounters(n, old)
	}
}

// RaiseRules goes on by other rules, if they are newer.
func (s *State) RaiseRules(to rules.Number) {
	if to <= s.Rules {
		return
	}
	s.Rules = to
	s.offerChanges++
	s.preemptible.ForgetStopping()
	for n := facts.NodeIndex(0); int(n) < s.Nodes(); n++ {
		if offer := s.Node(n).Offer; offer != nil {
			s.rooms.SetPurpose(s.epoch, n, offer.Purpose(to))
			s.rooms.Set(s.epoch, n, s.Free(n), s.Eligible(n))
		}
		for _, r := range s.Node(n).Held {
			slot, _ := s.SlotAt(r)
			s.moveStopping(s.Job(r.Job), r, &slot, 1)
		}
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
	s.offerChanges++
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
		s.setFree(n, s.Free(n), row.Offer.Open() && !drain.On)
	})
	s.doubts.Offers(drain.On)
	s.countGiven(n)
}

// countGiven counts anew what a node gives to pools: what is held there, and what is free if it takes work.
func (s *State) countGiven(n facts.NodeIndex) {
	row := s.editNode(n)
	given := s.givenBy(row)
	for k := range given {
		s.offered[k] += given[k] - row.given[k]
	}
	s.PlacementDirty, s.PreemptionDirty = true, s.PreemptionDirty || given != row.given
	facts.Assert(slices.Min(s.offered[:]) >= 0, "what is offered is not negative")
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

// classOf numbers equal offers of terms.Offer.Class.
func (s *State) classOf(offer *terms.Offer) uint32 {
	key := offer.Class()
	class, ok := s.classes.Get(key)
	if !ok {
		class = uint32(s.classes.Len())
		s.classes.Set(key, class)
	}
	return class
}

// Classes returns how many different sets of attributes were ever offered; Node.Class is below that.
func (s *State) Classes() int { return s.classes.Len() }
