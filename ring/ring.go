// Package ring holds the rules of membership: who watches whom, joining in three phases, aborting and leaving.
//
// Its rules are those of the seed The Cluster as a Value, with the guards that Onyx learnt. Invariants:
//
//  1. The members form one cycle: each is watched by exactly one other, unless there is only one.
//  2. A member takes in at most one joiner, and while it has prepared one, who watches it begins no other.
//  3. Every step of a join checks the exact state that it continues; a step of another attempt changes nothing.
//  4. Targets are computed when an entry is applied, never taken from it.
//  5. An incarnation that left never comes back.
//
// What a peer must watch and write is a function of the value alone (Watches, Duties). The package knows no entries
// and no clock; replica calls it.
package ring

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/membership"
	"starling/terms"
)

func refuse(code facts.Code, format string, args ...any) facts.Refusal {
	return facts.Refusal{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Prepare begins an attempt of the joiner: with no member it joins at once, otherwise an observer is chosen among the
// open members by the entry's index; without one the attempt is Refused and waits in the value.
func Prepare(s *cluster.State, joiner terms.PeerID, number uint32) facts.Refusal {
	name, incarnation := joiner.Split()
	if reason := terms.NameProblem(string(name), true); reason != "" || incarnation == 0 {
		return refuse(facts.Invalid, "%q is not a name of a peer: the node's name %s", joiner, reason)
	}
	node := s.NodeOf(name)
	last, _ := s.Attempt(joiner)
	switch {
	case node != nil && incarnation <= node.Departed:
		return refuse(facts.Denied, "%s has left; its node must come back under a new incarnation", joiner)
	case node != nil && node.Peer == joiner:
		return refuse(facts.Conflict, "%s is a member already", joiner)
	case last.Phase != 0 && last.Phase != membership.Aborted:
		return refuse(facts.Conflict, "%s is joining already: attempt %d is %s", joiner, last.Number, last.Phase)
	case number != last.Number+1:
		return refuse(facts.Conflict, "attempt %d of %s does not follow its attempt %d", number, joiner, last.Number)
	}
	if reason := Crowded(s, joiner); reason != "" {
		return refuse(facts.Exhausted, "%s", reason)
	}
	node = s.EnsureNode(name)
	forgetEarlier(s, node, incarnation)
	attempt := membership.Attempt{Number: number, Began: s.Index, BeganAt: s.Time}
	switch {
	case s.Members() == 0:
		admit(s, node.Index, joiner)
		return facts.Refusal{}
	case node.Peer != "":
		attempt.Phase = membership.Refused
		s.SetAttempt(joiner, attempt)
		return refuse(facts.Conflict, "node %s is a member as %s: it must leave before %s can join", name, node.Peer,
			joiner)
	case s.Open() == 0:
		attempt.Phase = membership.Refused
		s.SetAttempt(joiner, attempt)
		return refuse(facts.Unavailable, "no member is free to observe %s: all are busy with other joins", joiner)
	}
	attempt.Phase = membership.Prepared
	attempt.Observer = s.OpenAt(int(uint64(s.Index) % uint64(s.Open())))
	for i := range uint64(s.Open()) { // who is away observes nobody, unless all are
		if p := s.OpenAt(int((uint64(s.Index) + i) % uint64(s.Open()))); !isAway(s, p) {
			attempt.Observer = p
			break
		}
	}
	s.SetAttempt(joiner, attempt)
	return facts.Refusal{}
}

// Crowded returns why the value has no place for a peer that it does not know yet, "" if it has. Lives before its own
// do not count: they end when it begins.
func Crowded(s *cluster.State, joiner terms.PeerID) string {
	name, incarnation := joiner.Split()
	node := s.NodeOf(name)
	if node == nil {
		if s.Nodes() < int(s.Limits.Nodes) {
			return ""
		}
		return fmt.Sprintf("the cluster has seen %d nodes, as many as it may: use the name of one that has left", s.Nodes())
	}
	later := uint32(0)
	for _, session := range node.Sessions {
		if session.Incarnation == incarnation {
			return ""
		}
		if session.Incarnation > incarnation || terms.NewPeerID(name, session.Incarnation) == node.Peer {
			later++
		}
	}
	if later < s.Limits.Lives {
		return ""
	}
	return fmt.Sprintf("node %s has %d lives already: end the programs that use its name", name, later)
}

// forgetEarlier ends the earlier lives of the node that neither joined nor left: a process that joins says that they
// are over. It does so even while another life is the member, so that they do not pile up.
func forgetEarlier(s *cluster.State, node *cluster.Node, incarnation uint32) {
	for _, session := range slices.Clone(node.Sessions) {
		if session.Incarnation < incarnation && terms.NewPeerID(node.Name, session.Incarnation) != node.Peer {
			s.EndSession(node.Index, session.Incarnation)
		}
	}
	if node.Peer == "" {
		s.Depart(node.Index, incarnation-1)
	}
}

// admit makes the joiner a member, and ends lives of its node that came before.
func admit(s *cluster.State, node facts.NodeIndex, joiner terms.PeerID) {
	_, incarnation := joiner.Split()
	s.SetAttempt(joiner, membership.Attempt{})
	s.SetPeer(node, joiner)
	s.Depart(node, incarnation-1)
}

// Notify is the observer's word that it watches the joiner.
func Notify(s *cluster.State, observer, joiner terms.PeerID, number uint32) facts.Refusal {
	attempt, refusal := current(s, joiner, number, membership.Prepared)
	if refusal.Code != facts.OK {
		return refusal
	}
	if attempt.Observer != observer {
		return refuse(facts.Denied, "%s is not the observer of %s, %s is", observer, joiner, attempt.Observer)
	}
	attempt.Phase = membership.Accepted
	s.SetAttempt(joiner, attempt)
	return facts.Refusal{}
}

// Accept takes the joiner in between its observer and whom the observer watches now.
func Accept(s *cluster.State, joiner, observer terms.PeerID, number uint32) facts.Refusal {
	attempt, refusal := current(s, joiner, number, membership.Accepted)
	if refusal.Code != facts.OK {
		return refusal
	}
	if attempt.Observer != observer {
		return refuse(facts.Conflict, "%s is observed by %s, not by %s", joiner, attempt.Observer, observer)
	}
	node := s.NodeOf(joiner.Node())
	if node.Peer != "" {
		return refuse(facts.Conflict, "node %s is a member as %s", node.Name, node.Peer)
	}
	subject := subjectOf(s, observer)
	admit(s, node.Index, joiner)
	s.SetWatched(observer, joiner)
	s.SetWatched(joiner, subject)
	return facts.Refusal{}
}

// subjectOf returns whom a joiner will watch: whom its observer watches, or the observer if that is alone.
func subjectOf(s *cluster.State, observer terms.PeerID) terms.PeerID {
	if subject := s.Watched(observer); subject != "" {
		return subject
	}
	return observer
}

// current returns the joiner's attempt if it has that number and phase.
func current(s *cluster.State, joiner terms.PeerID, number uint32, phase membership.AttemptPhase) (membership.Attempt,
	facts.Refusal) {
	attempt, ok := s.Attempt(joiner)
	switch {
	case !ok:
		return attempt, refuse(facts.NotFound, "%s is not joining", joiner)
	case attempt.Number != number || attempt.Phase != phase:
		return attempt, refuse(facts.Conflict, "attempt %d of %s is not %s: attempt %d is %s", number, joiner, phase,
			attempt.Number, attempt.Phase)
	}
	return attempt, facts.Refusal{}
}

// Abort ends an attempt; the joiner stays in the value, so that its place among those who wait is known.
func Abort(s *cluster.State, joiner terms.PeerID, number uint32) facts.Refusal {
	attempt, ok := s.Attempt(joiner)
	if !ok || attempt.Number != number || attempt.Phase == membership.Aborted {
		return refuse(facts.NotFound, "%s has no attempt %d to abort", joiner, number)
	}
	attempt.Phase, attempt.Observer = membership.Aborted, ""
	s.SetAttempt(joiner, attempt)
	return facts.Refusal{}
}

// AwayUntil returns the time before which nobody but the peer may say that it has left, 0 if anybody may: it is away
// with notice, and its node has not come back under another life.
func AwayUntil(s *cluster.State, p terms.PeerID) terms.Time {
	node := s.NodeOf(p.Node())
	if node == nil || node.Peer != p || node.Offer == nil {
		return 0
	}
	_, incarnation := p.Split()
	for _, session := range node.Sessions {
		if session.Incarnation > incarnation {
			return 0
		}
	}
	return node.Offer.AwayUntil
}

// isAway tells whether a member is away with notice.
func isAway(s *cluster.State, p terms.PeerID) bool {
	offer := s.NodeOf(p.Node()).Offer
	return offer != nil && !offer.Open()
}

// Volunteer replaces what a member's node gives. One that goes away takes in nobody any more.
func Volunteer(s *cluster.State, p terms.PeerID, offer *terms.Offer) {
	s.SetOffer(s.NodeOf(p.Node()).Index, offer)
	if !offer.Open() {
		orphan(s, p)
	}
}

// EndAbsences lets others say of each peer that is away with notice that it has left: in a cluster that goes on from a
// backup none of them comes back, and while all members are away nobody takes in a joiner.
func EndAbsences(s *cluster.State) {
	for n := range facts.NodeIndex(s.Nodes()) {
		if offer := s.Node(n).Offer; offer != nil && !offer.Open() {
			back := *offer
			back.AwayUntil = 0
			s.SetOffer(n, &back)
		}
	}
}

// orphan leaves the joiner that a member takes in without an observer.
func orphan(s *cluster.State, p terms.PeerID) {
	if joiner := s.Handshake(p); joiner != "" {
		attempt, _ := s.Attempt(joiner)
		attempt.Phase, attempt.Observer = membership.Orphaned, ""
		s.SetAttempt(joiner, attempt)
	}
}

// Leave takes a peer out, whether it is a member or joining, closes the ring over it, and sets its tombstone. A later
// life of a node that has a member gets none, for it would be that of the member as well; what it wrote last is still
// known, so that nobody begins that life again. Of a peer that is away with notice only itself may say that it leaves.
func Leave(s *cluster.State, by, p terms.PeerID) facts.Refusal {
	if until := AwayUntil(s, p); until > s.Time && by != p {
		return refuse(facts.Conflict, "%s is away with notice, for %d more seconds", p, (until-s.Time)/1000)
	}
	node := s.NodeOf(p.Node())
	_, joining := s.Attempt(p)
	if node == nil || node.Peer != p && !joining {
		return refuse(facts.NotFound, "%s is neither a member nor joining", p)
	}
	s.SetAttempt(p, membership.Attempt{})
	if node.Peer == p {
		orphan(s, p)
		watcher, watched := s.Watcher(p), s.Watched(p)
		s.SetWatched(p, "")
		if watcher == watched {
			watched = ""
		}
		if watcher != "" {
			s.SetWatched(watcher, watched)
		}
		s.SetPeer(node.Index, "")
	}
	_, incarnation := p.Split()
	if _, lives := s.Node(node.Index).Peer.Split(); lives == 0 || lives > incarnation {
		s.Depart(node.Index, incarnation)
	}
	return facts.Refusal{}
}
