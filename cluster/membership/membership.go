// Package membership holds which peers belong to the cluster, which watch which, and which are joining.
package membership

import (
	"fmt"
	"math"

	"github.com/tidwall/btree"

	"starling/terms"
	"starling/terms/codec"
	"starling/terms/fingerprint"
)

// Membership is which peers belong to the cluster, which watch which, and which are joining. Package ring holds its
// rules. To the zero Membership no peer belongs.
type Membership struct {
	// members have joined.
	members btree.Set[terms.PeerID]
	// watched leads from each member to the one it watches; watchers leads back. Both are empty for one member.
	watched, watchers btree.Map[terms.PeerID, terms.PeerID]
	// joining holds the attempt of every peer that wrote prepare-join-cluster and has neither joined nor left.
	joining btree.Map[terms.PeerID, Attempt]
	// handshakes leads from each member that prepared or accepted a joiner to that joiner.
	handshakes btree.Map[terms.PeerID, terms.PeerID]
	// open are the members that may observe a joiner: they take in no joiner, and whom they watch has prepared nobody. It
	// is a function of the tables above, kept so that a choice among many costs little.
	open   btree.Set[terms.PeerID]
	digest uint64
}

// AttemptPhase is how far an attempt to join is.
type AttemptPhase uint8

// The phases of an attempt.
const (
	// Prepared: the observer was chosen and is to notify the joiner.
	Prepared AttemptPhase = iota + 1
	// Accepted: the observer watches the joiner, who is to accept.
	Accepted
	// Refused: there was nobody to observe the joiner; it is to abort.
	Refused
	// Orphaned: the observer left; the joiner is to abort.
	Orphaned
	// Aborted: the joiner may try again.
	Aborted
)

// String returns the phase in a word.
func (p AttemptPhase) String() string {
	return [...]string{"none", "prepared", "accepted", "refused", "orphaned", "aborted"}[p]
}

// Attempt is one try of a peer to join.
type Attempt struct {
	// Number counts the peer's tries from 1. Commands about another number are void.
	Number uint32
	Phase  AttemptPhase
	// Observer is the member chosen, while Prepared or Accepted.
	Observer terms.PeerID
	// Began is the entry that began it, and BeganAt its time.
	Began   terms.Index
	BeganAt terms.Time
}

// Copy returns a membership equal to m that will not change with it, in constant time.
func (m *Membership) Copy() Membership {
	return Membership{
		members: *m.members.Copy(), watched: *m.watched.Copy(), watchers: *m.watchers.Copy(),
		joining: *m.joining.Copy(), handshakes: *m.handshakes.Copy(), open: *m.open.Copy(), digest: m.digest,
	}
}

// Members returns how many peers have joined.
func (m *Membership) Members() int { return m.members.Len() }

// IsMember tells whether the peer has joined.
func (m *Membership) IsMember(p terms.PeerID) bool {
	return m.members.Contains(p)
}

// MemberAt returns the member with the given rank in the order of ids, in time logarithmic in their number.
func (m *Membership) MemberAt(rank int) terms.PeerID {
	p, _ := m.members.GetAt(rank)
	return p
}

// Rank returns how many members come before the peer.
func (m *Membership) Rank(p terms.PeerID) int {
	low, high := 0, m.members.Len()
	for low < high {
		middle := (low + high) / 2
		if m.MemberAt(middle) < p {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// EachMember visits the members in the order of their ids until visit returns false.
func (m *Membership) EachMember(visit func(terms.PeerID) bool) {
	m.members.Scan(visit)
}

// Watched returns whom a member watches, "" if nobody.
func (m *Membership) Watched(p terms.PeerID) terms.PeerID {
	q, _ := m.watched.Get(p)
	return q
}

// Watcher returns who watches a member, "" if nobody does.
func (m *Membership) Watcher(p terms.PeerID) terms.PeerID {
	q, _ := m.watchers.Get(p)
	return q
}

// Handshake returns the joiner that a member prepared or accepted, "" if none.
func (m *Membership) Handshake(p terms.PeerID) terms.PeerID {
	q, _ := m.handshakes.Get(p)
	return q
}

// Attempt returns a peer's present attempt to join; ok is false if it has none.
func (m *Membership) Attempt(p terms.PeerID) (a Attempt, ok bool) { return m.joining.Get(p) }

// EachAttempt visits the attempts in the order of the joiners' ids.
func (m *Membership) EachAttempt(visit func(terms.PeerID, Attempt) bool) { m.joining.Scan(visit) }

// AddMember makes the peer a member; it watches nobody yet.
func (m *Membership) AddMember(p terms.PeerID) {
	m.members.Insert(p)
	m.digest += fingerprint.Text(tagMember, string(p))
	m.refresh(p)
}

// RemoveMember ends the membership of p.
func (m *Membership) RemoveMember(p terms.PeerID) {
	if m.members.Contains(p) {
		m.members.Delete(p)
		m.digest -= fingerprint.Text(tagMember, string(p))
	}
	m.refresh(p)
}

// refresh decides anew whether p may observe.
func (m *Membership) refresh(p terms.PeerID) {
	if m.mayObserve(p) {
		m.open.Insert(p)
	} else {
		m.open.Delete(p)
	}
}

func (m *Membership) mayObserve(p terms.PeerID) bool {
	next, _ := m.Attempt(m.Handshake(m.Watched(p)))
	return m.IsMember(p) && m.Handshake(p) == "" && next.Phase != Prepared
}

// Open returns how many members may observe a joiner now.
func (m *Membership) Open() int { return m.open.Len() }

// OpenAt returns the one with the given rank among them, in the order of ids.
func (m *Membership) OpenAt(rank int) terms.PeerID {
	p, _ := m.open.GetAt(rank)
	return p
}

// SetWatched lets p watch q, and nobody if q is "".
func (m *Membership) SetWatched(p, q terms.PeerID) {
	if old, ok := m.watched.Delete(p); ok {
		m.digest -= fingerprint.Text(tagWatched, string(p), string(old))
		if back, _ := m.watchers.Get(old); back == p {
			m.watchers.Delete(old)
		}
	}
	if q != "" {
		m.watched.Set(p, q)
		m.watchers.Set(q, p)
		m.digest += fingerprint.Text(tagWatched, string(p), string(q))
	}
	m.refresh(p)
}

// SetAttempt replaces the attempt of p; a zero attempt removes it.
func (m *Membership) SetAttempt(p terms.PeerID, a Attempt) {
	if old, ok := m.joining.Delete(p); ok {
		m.digest -= old.hash(p)
		if old.Observer != "" {
			m.handshakes.Delete(old.Observer)
			m.refresh(old.Observer)
			m.refresh(m.Watcher(old.Observer))
		}
	}
	if a == (Attempt{}) {
		return
	}
	m.joining.Set(p, a)
	m.digest += a.hash(p)
	if a.Observer != "" {
		m.handshakes.Set(a.Observer, p)
		m.refresh(a.Observer)
		m.refresh(m.Watcher(a.Observer))
	}
}

// The tags keep rows of different tables apart.
const (
	tagMember uint64 = iota + 1
	tagWatched
	tagAttempt
)

func (a Attempt) hash(p terms.PeerID) uint64 {
	return fingerprint.Words(tagAttempt, fingerprint.Text(tagAttempt, string(p), string(a.Observer)), uint64(a.Number),
		uint64(a.Phase),
		uint64(a.Began), uint64(a.BeganAt))
}

// Digest is a hash of everything in the membership.
func (m *Membership) Digest() uint64 { return m.digest }

// Facts are who watches whom, in the order of the watchers, and the attempts to join.
type Facts struct {
	watched  [][2]terms.PeerID
	joiners  []terms.PeerID
	attempts []Attempt
}

// Facts returns what Restore needs besides the members.
func (m *Membership) Facts() *Facts {
	f := &Facts{joiners: m.joining.Keys(), attempts: m.joining.Values()}
	m.watched.Scan(func(p, q terms.PeerID) bool {
		f.watched = append(f.watched, [2]terms.PeerID{p, q})
		return true
	})
	return f
}

// Code writes or reads the facts.
func (f *Facts) Code(c *codec.Coder) {
	peer := func(c *codec.Coder, p *terms.PeerID) { codec.Text(c, p, terms.PeerIDBytesMax) }
	codec.List(c, &f.watched, math.MaxInt32, func(c *codec.Coder, pair *[2]terms.PeerID) {
		peer(c, &pair[0])
		peer(c, &pair[1])
	})
	codec.List(c, &f.joiners, math.MaxInt32, peer)
	if !c.Writing {
		f.attempts = make([]Attempt, len(f.joiners))
	}
	for i := range f.attempts {
		a := &f.attempts[i]
		codec.Integer(c, &a.Number, math.MaxUint32)
		codec.Integer(c, &a.Phase, uint64(Aborted))
		peer(c, &a.Observer)
		codec.Integer(c, &a.Began, math.MaxUint64)
		codec.Integer(c, &a.BeganAt, math.MaxInt64)
	}
}

// Restore adds the facts to a membership that has its members and nothing else.
func (m *Membership) Restore(f *Facts) {
	for _, pair := range f.watched {
		m.SetWatched(pair[0], pair[1])
	}
	for i, p := range f.joiners {
		m.SetAttempt(p, f.attempts[i])
	}
}

// Audit recomputes what is kept although it could be derived, and checks what holds between entries for every ring: it
// is one cycle, whatever joins are under way. It returns a line for each difference.
func (m *Membership) Audit() (found []string) {
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	digest := uint64(0)
	m.EachMember(func(p terms.PeerID) bool {
		digest += fingerprint.Text(tagMember, string(p))
		if q := m.Watched(p); q != "" {
			digest += fingerprint.Text(tagWatched, string(p), string(q))
		}
		if open := m.mayObserve(p); open != m.open.Contains(p) {
			say("member %s is open: %v, kept is %v", p, open, m.open.Contains(p))
		}
		return true
	})
	m.EachAttempt(func(p terms.PeerID, attempt Attempt) bool {
		digest += attempt.hash(p)
		if attempt.Observer != "" && (m.Handshake(attempt.Observer) != p || !m.IsMember(attempt.Observer)) {
			say("joiner %s has observer %s, which takes in %q", p, attempt.Observer, m.Handshake(attempt.Observer))
		}
		return true
	})
	if digest != m.digest {
		say("the digest of the membership is %016x, kept is %016x", digest, m.digest)
	}
	if m.Members() < 2 && m.watched.Len() == 0 {
		return found
	}
	length, first := 0, m.MemberAt(0)
	for p := first; p != "" && length <= m.Members(); length++ {
		if p = m.Watched(p); p == first {
			break
		}
	}
	if length+1 != m.Members() || m.watched.Len() != m.Members() || m.watchers.Len() != m.Members() {
		say("the ring is not a single cycle of the %d members", m.Members())
	}
	return found
}
