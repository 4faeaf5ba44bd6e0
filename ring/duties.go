package ring

import (
	"starling/cluster"
	"starling/cluster/membership"
	"starling/terms"
)

// Watches returns whose pulses the peer must watch, each once: whom it watches in the ring, and while that is away whom
// that watches, and so on; the joiner that it takes in, and while it joins itself its observer, then whom it will
// watch.
func Watches(s *cluster.State, self terms.PeerID) []terms.PeerID {
	var all []terms.PeerID
	all = add(all, s.Watched(self))
	for p := s.Watched(self); p != "" && isAway(s, p); {
		if p = s.Watched(p); p == self {
			break
		}
		all = add(all, p)
	}
	all = add(all, s.Handshake(self))
	switch attempt, _ := s.Attempt(self); attempt.Phase {
	case membership.Prepared:
		all = add(all, attempt.Observer)
	case membership.Accepted:
		all = add(all, subjectOf(s, attempt.Observer))
	}
	return all
}

// Probes returns whose pulses a peer that cannot join must look at as well: an earlier life of its own node, and one
// member chosen by the refused entry, so that a cluster whose members all died is cleared by whoever comes.
func Probes(s *cluster.State, self terms.PeerID) []terms.PeerID {
	var all []terms.PeerID
	attempt, _ := s.Attempt(self)
	if attempt.Phase < membership.Refused {
		return nil
	}
	if s.Members() > 0 {
		all = add(all, s.MemberAt(int(uint64(attempt.Began)%uint64(s.Members()))))
	}
	if node := s.NodeOf(self.Node()); node != nil && node.Peer != self {
		all = add(all, node.Peer)
	}
	return all
}

func add(all []terms.PeerID, p terms.PeerID) []terms.PeerID {
	for _, q := range all {
		if q == p {
			return all
		}
	}
	if p == "" {
		return all
	}
	return append(all, p)
}

// Duty is a command that a peer must write.
type Duty uint8

// The duties.
const (
	// MustPrepare: begin the next attempt.
	MustPrepare Duty = iota + 1
	// MustNotify: tell the joiner that it is watched.
	MustNotify
	// MustAccept: finish one's own join.
	MustAccept
	// MustAbort: end one's own attempt, which cannot succeed.
	MustAbort
)

// Step is a duty with its arguments.
type Step struct {
	Duty Duty
	// Joiner is the peer that joins, Observer its observer.
	Joiner, Observer terms.PeerID
	Attempt          uint32
}

// Duties returns what the peer must write because of the value. Whether it is time for MustPrepare after an aborted
// attempt is asked of Ready.
func Duties(s *cluster.State, self terms.PeerID) []Step {
	var steps []Step
	if joiner := s.Handshake(self); joiner != "" {
		if attempt, _ := s.Attempt(joiner); attempt.Phase == membership.Prepared {
			steps = append(steps, Step{MustNotify, joiner, self, attempt.Number})
		}
	}
	node := s.NodeOf(self.Node())
	_, incarnation := self.Split()
	if node != nil && (node.Peer == self || incarnation <= node.Departed) {
		return steps
	}
	switch attempt, _ := s.Attempt(self); attempt.Phase {
	case membership.Prepared:
	case membership.Accepted:
		steps = append(steps, Step{MustAccept, self, attempt.Observer, attempt.Number})
	case membership.Refused, membership.Orphaned:
		steps = append(steps, Step{MustAbort, self, "", attempt.Number})
	default:
		steps = append(steps, Step{MustPrepare, self, "", attempt.Number + 1})
	}
	return steps
}

// Limits of the wait between attempts, in milliseconds.
const (
	backOffMillis    = 250
	backOffMillisMax = 8000
)

// Ready tells whether a peer whose attempt was aborted should begin the next at this time, and if not, when to ask
// again, 0 for when the value has changed. While another life of its node is a member it cannot join, and says nothing:
// it looks at that one's pulse (see Probes). Otherwise it should as soon as enough members are open for it and for all
// who have waited longer (a join closes two); and, since some of those may be dead, in any case after a back-off that
// doubles, spread by the peer's name.
func Ready(s *cluster.State, self terms.PeerID, now terms.Time) (ready bool, askAgain terms.Time) {
	attempt, ok := s.Attempt(self)
	switch {
	case !ok && Crowded(s, self) != "":
		return false, 0
	case !ok || s.Members() == 0:
		return true, 0
	}
	if s.NodeOf(self.Node()).Peer != "" {
		return false, 0
	}
	if s.Open() > 2*ahead(s, attempt) {
		return true, 0
	}
	wait := uint64(min(backOffMillis<<min(attempt.Number, 16), backOffMillisMax))
	spread := uint64(attempt.Number)
	for i := range len(self) {
		spread = spread*31 + uint64(self[i])
	}
	askAgain = attempt.BeganAt + terms.Time(wait/2+spread%wait)
	return now >= askAgain, askAgain
}

// ahead counts the peers that have waited longer for an observer.
func ahead(s *cluster.State, mine membership.Attempt) int {
	count := 0
	s.EachAttempt(func(_ terms.PeerID, a membership.Attempt) bool {
		if a.Phase >= membership.Refused && a.Began < mine.Began {
			count++
		}
		return true
	})
	return count
}
