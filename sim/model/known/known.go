// Package known is the registry once more, as plainly as it can be said.
package known

import (
	"fmt"
	"reflect"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// Twin is who is known. No token is deleted from it because its time is over: it counts no more.
type Twin struct {
	users  []access.Credential
	tokens []access.Token
	nodes  map[terms.NodeName]access.Key
	gone   map[terms.NodeName]bool
	// signed are the authorities in their order, with those that count no more.
	signed []access.Authority
	// secrets are sealed by a name: all versions, oldest first.
	secrets map[string][]access.Secret
	// now is the time by which credentials have ended, 0 where the rules do not ask.
	now terms.Time
}

// New knows nobody.
func New() *Twin {
	return &Twin{nodes: map[terms.NodeName]access.Key{}, gone: map[terms.NodeName]bool{},
		secrets: map[string][]access.Secret{}}
}

// IsGone tells whether a node was removed.
func (t *Twin) IsGone(node terms.NodeName) bool { return t.gone[node] }

// Knows tells whether a node has a key.
func (t *Twin) Knows(node terms.NodeName) bool {
	_, known := t.nodes[node]
	return known
}

func (t *Twin) tokensAt(now terms.Time) (all []access.Token) {
	for _, one := range t.tokens {
		if one.Until > now && one.Uses > 0 {
			all = append(all, one)
		}
	}
	return all
}

// RequestOf returns the id of a request, "" for one that has none.
func RequestOf(c command.Command) string {
	if id := reflect.ValueOf(c).Elem().FieldByName("RequestID"); id.IsValid() {
		return id.String()
	}
	return ""
}

// Around is what else is as a request is obeyed.
type Around struct {
	Author  terms.PeerID
	Members []terms.PeerID
	Pools   []terms.Pool
	Time    terms.Time
	// IsTaken tells that the node which the request admits has a member, or may run what must not run twice.
	IsTaken bool
	Rules   rules.Number
	// Open lists the versions to which instances may come back, of all jobs that have not finished.
	Open func() []facts.JobVersion
}

// Obey applies such a request.
func (t *Twin) Obey(c command.Command, a Around) bool {
	author, now := a.Author.Node(), a.Time
	switch c := c.(type) {
	case *command.AddUser:
		if !t.addUser(c.Credential) {
			return false
		}
		for i := range t.users {
			if o := &t.users[i]; a.Rules >= rules.OneRole && o.Name == c.Credential.Name && c.Credential.Role != access.NoRole {
				o.Role = min(o.Role, c.Credential.Role)
			}
		}
		return true
	case *command.RemoveUser:
		return t.removeUser(c.Name)
	case *command.AddAuthority:
		return t.addAuthority(c)
	case *command.RemoveAuthority:
		return t.removeAuthority(c.ID)
	case *command.AddToken:
		return t.addToken(c.Token, terms.Time(c.LifeMillis), now)
	case *command.RemoveToken:
		return t.removeToken(c.ID, now)
	case *command.PutSecret, *command.SealSecret, *command.RemoveSecret:
		return t.obeySecret(c, &a)
	case *command.AdmitNode:
		return t.admit(c, author, a.IsTaken, now)
	}
	panic("sim: the model has no rule for a command of kind " + c.Kind().String())
}

// addUser lets a credential count.
func (t *Twin) addUser(o access.Credential) bool {
	live := t.users
	for _, key := range t.nodes {
		if key == o.Key {
			return false
		}
	}
	same := slices.IndexFunc(live, func(other access.Credential) bool { return other.Key == o.Key })
	if o.Kind != access.OfUser || access.NameProblem(o.Name) != "" ||
		same >= 0 && live[same].Name != o.Name || same < 0 && len(live) >= registry.UserKeysMax {
		return false
	}
	others := slices.DeleteFunc(slices.Clone(live), func(other access.Credential) bool { return other.Key == o.Key })
	t.users = append(others, o)
	return true
}

// removeUser ends a user's credentials.
func (t *Twin) removeUser(name string) bool {
	before := len(t.users)
	t.users = slices.DeleteFunc(slices.Clone(t.users), func(o access.Credential) bool { return o.Name == name })
	return len(t.users) < before
}

// addToken lets a token count.
func (t *Twin) addToken(one access.Token, life, now terms.Time) bool {
	one.Until = now + life
	live := t.tokensAt(now)
	if one.ID == "" || one.Uses == 0 || life == 0 || len(live) >= registry.TokensMax ||
		slices.ContainsFunc(live, func(other access.Token) bool { return other.ID == one.ID }) {
		return false
	}
	t.tokens = append(live, one)
	return true
}

// removeToken ends a token.
func (t *Twin) removeToken(id string, now terms.Time) bool {
	before := len(t.tokensAt(now))
	t.tokens = slices.DeleteFunc(t.tokensAt(now), func(one access.Token) bool { return one.ID == id })
	return len(t.tokens) < before
}

// addAuthority lets another authority sign.
func (t *Twin) addAuthority(c *command.AddAuthority) bool {
	signs, former := access.Key{}, -1
	for i := len(t.signed) - 1; i >= 0; i-- {
		if t.signed[i].Certificate == c.Certificate {
			return false
		}
		if t.signed[i].Former {
			former = i
		}
	}
	if len(t.signed) > 0 {
		signs = t.signed[len(t.signed)-1].ID()
	}
	if c.Certificate == "" || signs != c.Against || len(t.signed) == registry.AuthoritiesMax && former < 0 {
		return false
	}
	all := slices.Clone(t.signed)
	if len(all) == registry.AuthoritiesMax {
		all = slices.Delete(all, former, former+1)
	}
	t.signed = append(all, access.Authority{Certificate: c.Certificate})
	return true
}

// removeAuthority ends one that does not sign.
func (t *Twin) removeAuthority(id access.Key) bool {
	for i := 0; i < len(t.signed)-1; i++ {
		if t.signed[i].ID() == id && !t.signed[i].Former && !t.seals(id) {
			t.signed[i].Former = true
			return true
		}
	}
	return false
}

// admit makes a key that of a node; taken tells that another machine is or was the node, author who says so.
func (t *Twin) admit(c *command.AdmitNode, author terms.NodeName, taken bool, now terms.Time) bool {
	has, known := t.nodes[c.Node]
	if known && has == c.Key {
		return c.Token != "" || author == c.Node
	}
	if t.isTaken(c.Key) || terms.NameProblem(string(c.Node), true) != "" {
		return false
	}
	if c.Token == "" {
		if author != c.Node || known || t.gone[c.Node] {
			return false
		}
		t.nodes[c.Node] = c.Key
		return true
	}
	live := t.tokensAt(now)
	at := slices.IndexFunc(live, func(one access.Token) bool { return one.ID == c.Token })
	if taken || at < 0 || live[at].Node != "" && live[at].Node != c.Node {
		return false
	}
	live[at].Uses--
	t.tokens, t.nodes[c.Node] = live, c.Key
	delete(t.gone, c.Node)
	return true
}

// isTaken tells whether a key is somebody's.
func (t *Twin) isTaken(key access.Key) bool {
	for _, other := range t.nodes {
		if other == key {
			return true
		}
	}
	return slices.ContainsFunc(t.users, func(o access.Credential) bool { return o.Key == key })
}

// Remove notes that a node was removed.
func (t *Twin) Remove(node terms.NodeName) {
	delete(t.nodes, node)
	t.gone[node] = true
}

// Role is that of somebody in a pool: of the given tree, in any order.
func (t *Twin) Role(who access.Subject, path terms.PoolPath, tree []terms.Pool) access.Role {
	role := access.NoRole
	own := slices.DeleteFunc(slices.Clone(t.users), func(o access.Credential) bool { return o.Name != who.Name })
	switch {
	case who.Kind == access.OfLocal:
		return access.Admin
	case who.Kind != access.OfUser || len(own) == 0:
		return role
	}
	ended := func(o access.Credential) bool { return o.Until != 0 && o.Until <= t.now }
	live := slices.DeleteFunc(slices.Clone(own), ended)
	if len(live) == 0 {
		live = own
	}
	for _, o := range live {
		role = max(role, o.Role)
	}
	for _, p := range tree {
		if path != p.Path && (len(path) <= len(p.Path) || string(path)[:len(p.Path)+1] != string(p.Path)+"/") {
			continue
		}
		for given, names := range [][]string{access.Viewer: p.Viewers, access.Submitter: p.Submitters,
			access.Operator: p.Operators, access.Admin: p.Owners} {
			if slices.Contains(names, who.Name) {
				role = max(role, access.Role(given))
			}
		}
	}
	return role
}

// Differences compares it with the registry at a time.
func (t *Twin) Differences(r *registry.Registry, now terms.Time) (found []string) {
	say := func(what string, fast, slow any) {
		if fast != slow {
			found = append(found, fmt.Sprintf("%s: the fold has %+v, the model %+v", what, fast, slow))
		}
	}
	users, tokens := t.users, t.tokensAt(now)
	say("credentials of users", len(r.All(access.OfUser)), len(users))
	for _, o := range users {
		if got := r.Find(access.Subject{Kind: o.Kind, Name: o.Name}, o.Key); got == nil || *got != o {
			say("credential of "+o.Name, fmt.Sprint(got), fmt.Sprint(o))
		}
	}
	open := r.Open(now)
	say("tokens", len(open), len(tokens))
	for _, one := range tokens {
		say("token "+one.ID, slices.Contains(open, one), true)
	}
	say("keys of nodes", len(r.All(access.OfNode)), len(t.nodes))
	for node, key := range t.nodes {
		got := r.Find(access.Subject{Kind: access.OfNode, Name: string(node)}, key)
		say("key of node "+string(node), got != nil, true)
	}
	if r != nil {
		say("authorities", fmt.Sprint(r.Authorities), fmt.Sprint(t.signed))
	}
	found = append(found, t.secretDifferences(r)...)
	for node := range t.gone {
		say("node "+string(node)+" is gone", r.IsGone(node), true)
	}
	return found
}
