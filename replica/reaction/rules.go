package reaction

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// rules raises the rules of a cluster that has had no job yet, as soon as all members know the next: a new cluster has
// all that its programs can. Later it is for people to say when no older program will come back. The first member
// speaks for all.
func (r *reacting) rules() {
	next := r.s.Rules + 1
	if r.s.LastJob > 0 || next > rules.Released || !r.s.IsMember(r.self) || r.s.Rank(r.self) != 0 {
		return
	}
	for _, p := range Behind(r.s, next) {
		if own := r.o.Offer; p != r.self || own == nil || own.Rules < next || own.Problem() != "" {
			return // of itself it writes an offer that says so before this
		}
	}
	r.write(&command.RaiseRules{Version: next})
}

// Rising tells whether the rules of a cluster that has had no job yet are about to be raised: no member has offered
// something by a program that does not know the next.
func Rising(s *cluster.State) bool {
	next := s.Rules + 1
	return s.LastJob == 0 && next <= rules.Released &&
		!slices.ContainsFunc(Behind(s, next), func(p terms.PeerID) bool { return s.NodeOf(p.Node()).Offer != nil })
}

// admission makes the key of a node known that is in the cluster already.
func (r *reacting) admission() {
	node := r.self.Node()
	if r.o.Key == (access.Key{}) || r.s.Rules < rules.Registry || !r.s.IsMember(r.self) {
		return
	}
	if own := r.s.Registry().Of(access.Subject{Kind: access.OfNode, Name: string(node)}); len(own) == 0 {
		r.write(&command.AdmitNode{Node: node, Key: r.o.Key})
	}
}

// Behind returns the members with programs that do not know a version of the rules.
func Behind(s *cluster.State, version rules.Number) (all []terms.PeerID) {
	s.EachMember(func(p terms.PeerID) bool {
		if offer := s.NodeOf(p.Node()).Offer; offer == nil || offer.Rules < version {
			all = append(all, p)
		}
		return true
	})
	return all
}
