package promises

import (
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
)

// absence is of a peer that is away with notice.
type absence struct {
	peer  terms.PeerID
	until terms.Time
}

// keepsAway checks that a peer which is away with notice stays a member until its time is over, unless it says itself
// that it leaves, its node was removed, or is back under another life.
func (p *Watch) keepsAway(s *cluster.State, folded *report.Folded) {
	for n, before := range p.away {
		now := s.Node(n)
		_, life := before.peer.Split()
		back := slices.ContainsFunc(now.Sessions, func(other facts.Session) bool { return other.Incarnation > life })
		if now.Peer != before.peer && s.Time < before.until && !back && !s.Registry().IsGone(now.Name) &&
			!says(folded, before.peer) {
			p.fail("%s left at %d, and was away with notice until %d", before.peer, s.Time, before.until)
		}
	}
	p.away = map[facts.NodeIndex]absence{}
	for n := range facts.NodeIndex(s.Nodes()) {
		if row := s.Node(n); row.Offer != nil && !row.Offer.Open() {
			p.away[n] = absence{row.Peer, row.Offer.AwayUntil}
		}
	}
}

// says tells whether the entry has the word of the peer that somebody leaves.
func says(folded *report.Folded, p terms.PeerID) bool {
	return folded.Entry != nil && folded.Entry.Writer == p && slices.ContainsFunc(folded.Entry.Commands,
		func(c command.Command) bool { return c.Kind() == command.KindLeave })
}
