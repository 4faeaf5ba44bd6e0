// Package enrol folds the commands that change who is known to the cluster.
package enrol

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// Request returns the id of a request about who is known, "" for none, and what obeys it.
func Request(s *cluster.State, author terms.PeerID, c command.Command) (id string, obey func() report.Result) {
	switch c := c.(type) {
	case *command.AddUser:
		return c.RequestID, func() report.Result { return addUser(s, c) }
	case *command.RemoveUser:
		return c.RequestID, func() report.Result { return removeUser(s, c) }
	case *command.AddAuthority:
		return c.RequestID, func() report.Result { return addAuthority(s, c) }
	case *command.RemoveAuthority:
		return c.RequestID, func() report.Result { return removeAuthority(s, c) }
	case *command.AddToken:
		return c.RequestID, func() report.Result { return addToken(s, c) }
	case *command.RemoveToken:
		return c.RequestID, func() report.Result { return removeToken(s, c) }
	case *command.PutSecret:
		return c.RequestID, func() report.Result { return putSecret(s, c) }
	case *command.SealSecret:
		return "", func() report.Result { return sealSecret(s, author, c) }
	case *command.RemoveSecret:
		return c.RequestID, func() report.Result { return removeSecret(s, c) }
	case *command.AdmitNode:
		return "", func() report.Result { return admitNode(s, author, c) }
	}
	panic(fmt.Sprintf("replica: no rule for command %s", c.Kind()))
}

// set keeps the next registry, or refuses.
func set(s *cluster.State, next *registry.Registry, refusal string) report.Result {
	if refusal != "" {
		return report.Refuse(facts.Denied, "%s", refusal)
	}
	s.SetRegistry(next)
	return report.Result{}
}

// addUser lets a credential of a user count.
func addUser(s *cluster.State, c *command.AddUser) report.Result {
	next, refusal := s.Registry().AddUser(c.Credential, s.Time, s.Rules >= rules.OneRole)
	return set(s, next, refusal)
}

// removeUser ends the credentials of a user.
func removeUser(s *cluster.State, c *command.RemoveUser) report.Result {
	who := access.Subject{Kind: access.OfUser, Name: c.Name}
	if len(s.Registry().Of(who)) == 0 {
		return report.Refuse(facts.NotFound, "%s has no credentials: see \"starling user ls\"", who)
	}
	return set(s, s.Registry().Remove(who, s.Time), "")
}

// addToken lets a join token count.
func addToken(s *cluster.State, c *command.AddToken) report.Result {
	next, refusal := s.Registry().AddToken(c.Token, terms.Time(c.LifeMillis), s.Time)
	return set(s, next, refusal)
}

// removeToken ends a join token.
func removeToken(s *cluster.State, c *command.RemoveToken) report.Result {
	next, found := s.Registry().RemoveToken(c.ID, s.Time)
	if !found {
		return report.Refuse(facts.NotFound, "there is no token %s: it was used, has expired or was removed, see "+
			"\"starling token ls\"", c.ID)
	}
	return set(s, next, "")
}

// addAuthority lets another authority sign.
func addAuthority(s *cluster.State, c *command.AddAuthority) report.Result {
	next, refusal := s.Registry().AddAuthority(access.Authority{Certificate: c.Certificate}, c.Against, s.Time)
	return set(s, next, refusal)
}

// removeAuthority ends an authority.
func removeAuthority(s *cluster.State, c *command.RemoveAuthority) report.Result {
	next, refusal, found := s.Registry().RemoveAuthority(c.ID, s.Time)
	if !found {
		return report.Refuse(facts.NotFound, "no authority %s counts: see \"starling ca ls\"", c.ID)
	}
	return set(s, next, refusal)
}

// admitNode makes a key that of a node, at the word of a member.
func admitNode(s *cluster.State, author terms.PeerID, c *command.AdmitNode) report.Result {
	if c.Token == "" && author.Node() != c.Node {
		return report.Refuse(facts.Denied, "%s may not admit node %s without a token", author, c.Node)
	}
	if r := MayAdmit(s, c.Node, c.Key); c.Token != "" && r.Refused() {
		return r
	}
	next, refusal := s.Registry().Admit(c.Node, c.Key, c.Token, s.Time)
	return set(s, next, refusal)
}

// MayAdmit refuses to let another machine have the name of a node as long as one has it, or may still run what must not
// run twice.
func MayAdmit(s *cluster.State, name terms.NodeName, key access.Key) report.Result {
	node := s.NodeOf(name)
	if node == nil || s.Registry().Find(access.Subject{Kind: access.OfNode, Name: string(name)}, key) != nil {
		return report.Result{}
	}
	if node.Peer != "" {
		return report.Refuse(facts.Conflict, "node %s is a member, as %s: stop it first, or give the new machine another name",
			name, node.Peer)
	}
	if slot, until := livesOn(s, node); until > 0 && s.Rules >= rules.NewMachines {
		return report.Refuse(facts.Conflict, "the machine that node %s was may still run %s, and has certainly stopped it in %d s: "+
			"try again then, or give the new machine another name", name, slot, (until-s.Time)/1000+1)
	}
	return report.Result{}
}

// livesOn returns which instance a node that left may still run although nothing else may take its place, and when the
// last of those has certainly stopped itself, the lowest of several; 0 for none.
func livesOn(s *cluster.State, node *cluster.Node) (last terms.SlotName, until terms.Time) {
	held := node.Held
	if s.Rules >= rules.LowestLives {
		held = slices.SortedStableFunc(slices.Values(held), facts.SlotRef.Compare)
	}
	for _, r := range held {
		if slot, _ := s.SlotAt(r); s.Job(r.Job).MayLive(r, &slot) && slot.Deadline > until {
			last, until = s.NameOf(r), slot.Deadline
		}
	}
	return last, until
}

// MayRemove refuses to take a node out that there is not, or without which no member would be left. Of one that was
// taken out it may be told later that it is off.
func MayRemove(s *cluster.State, c *command.RemoveNode) report.Result {
	name := c.Node
	node, own := s.NodeOf(name), s.Registry().Of(access.Subject{Kind: access.OfNode, Name: string(name)})
	switch {
	case s.Registry().IsGone(name) && c.IsOff && node != nil && isAwaited(s, node):
		return report.Result{}
	case s.Registry().IsGone(name) || node == nil && len(own) == 0:
		return report.Refuse(facts.NotFound, "there is no node %s", name)
	case node != nil && node.Peer != "" && s.Members() == 1:
		return report.Refuse(facts.Conflict, "node %s is the only member: another must take its place first", name)
	}
	return report.Result{}
}

// isAwaited tells whether a node that left may still run something that ends itself.
func isAwaited(s *cluster.State, node *cluster.Node) bool {
	_, until := livesOn(s, node)
	return until > 0
}

// RemoveNode ends the key of a node for good, and the wait for what it may still run if it is off.
func RemoveNode(s *cluster.State, c *command.RemoveNode) report.Result {
	if node := s.NodeOf(c.Node); node != nil && c.IsOff {
		for _, r := range slices.Clone(node.Held) {
			if slot, _ := s.SlotAt(r); s.Job(r.Job).MayLive(r, &slot) {
				slot.Deadline = s.Time
				s.SetSlot(r, slot)
			}
		}
	}
	if s.Registry().IsGone(c.Node) {
		return report.Result{}
	}
	return set(s, s.Registry().Remove(access.Subject{Kind: access.OfNode, Name: string(c.Node)}, s.Time), "")
}
