package replica

import (
	"fmt"
	"strings"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// raiseRules lets the fold go on by the next version of the rules if the programs of all members know it. The entry
// itself is folded by the old one to its end, so that a program that knows no other has the value of all up to here,
// and stops.
func (f *fold) raiseRules(c *command.RaiseRules) Result {
	if r := f.member(); r.refused() {
		return r
	}
	if c.Version == f.s.Rules {
		return Result{} // a repetition
	}
	if c.Version != f.s.Rules+1 {
		return refused(facts.Conflict, "the rules have version %d, the next is %d, not %d", f.s.Rules, f.s.Rules+1,
			c.Version)
	}
	if all := behind(f.s, c.Version); len(all) > 0 {
		return refused(facts.Conflict,
			"%d of %d members do not know version %d of the rules (%s): install a newer program there first",
			len(all), f.s.Members(), c.Version, list(all))
	}
	f.raised = c.Version
	return Result{}
}

// behind returns the members with programs that do not know a version of the rules.
func behind(s *cluster.State, version rules.Number) (all []terms.PeerID) {
	s.EachMember(func(p terms.PeerID) bool {
		if offer := s.NodeOf(p.Node()).Offer; offer == nil || offer.Rules < version {
			all = append(all, p)
		}
		return true
	})
	return all
}

// namedMax bounds the members that a refusal names.
const namedMax = 5

// list is the first names, and how many there are beyond them.
func list(all []terms.PeerID) string {
	var names []string
	for _, p := range all[:min(len(all), namedMax)] {
		names = append(names, string(p))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// rules raises the rules of a cluster that has had no job yet, as soon as all members know the next: a new cluster has
// all that its programs can. Later it is for people to say when no older program will come back. The first member
// speaks for all.
func (r *reacting) rules() {
	next := r.s.Rules + 1
	if r.s.LastJob > 0 || next > rules.Released || !r.s.IsMember(r.self) || r.s.Rank(r.self) != 0 {
		return
	}
	for _, p := range behind(r.s, next) {
		if own := r.o.Offer; p != r.self || own == nil || own.Rules < next || own.Problem() != "" {
			return // of itself it writes an offer that says so before this
		}
	}
	r.write(&command.RaiseRules{Version: next})
}
