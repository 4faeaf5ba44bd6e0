// Package registry keeps who is known to the cluster: the keys of its nodes and users, and the tokens by which machines
// join. Keys are listed that count, not those that do not any more.
package registry

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/codec"
	"starling/terms/fingerprint"
	"starling/terms/rules"
)

// Limits of the registry.
const (
	// UserKeysMax bounds the credentials of users, NodeKeysMax those of nodes, TokensMax the tokens that may be used yet.
	UserKeysMax = 10_000
	NodeKeysMax = 100_000
	TokensMax   = 1_000
	// AuthoritiesMax bounds the authorities, with those that count no more.
	AuthoritiesMax = 16
)

// tag keeps the hash apart from others.
const tag uint64 = 21

// Registry is who is known. It is never changed, but replaced whole; nil knows nobody.
type Registry struct {
	// Credentials are in the order of kinds, names and keys, Tokens in that of their ids. Gone are the names of nodes that
	// were removed and not admitted again, in order.
	Credentials []access.Credential
	Tokens      []access.Token
	Gone        []terms.NodeName
	// Authorities are in the order in which they came: the last one signs. There are none until the first is replaced.
	Authorities []access.Authority
	// Secrets are in the order of their pools and names.
	Secrets []access.Secret
	Hash    uint64
}

// Code writes or reads the registry, as the rules have it.
func (r *Registry) Code(c *codec.Coder, in rules.Number) {
	codec.List(c, &r.Credentials, math.MaxInt32, func(c *codec.Coder, o *access.Credential) { o.Code(c) })
	codec.List(c, &r.Tokens, math.MaxInt32, func(c *codec.Coder, t *access.Token) { t.Code(c) })
	codec.Texts(c, &r.Gone, math.MaxInt32, terms.NameBytesMax)
	if in >= rules.Authorities {
		codec.List(c, &r.Authorities, math.MaxInt32, func(c *codec.Coder, a *access.Authority) { a.Code(c) })
	}
	if in >= rules.DiskLimits {
		codec.List(c, &r.Secrets, math.MaxInt32, func(c *codec.Coder, s *access.Secret) { s.Code(c) })
	}
	if !c.Writing { // who writes it shares it with others
		r.hash()
	}
}

// hash sets the hash, which is 0 for nobody: the sum of those of its rows, so that a change costs what it changes.
func (r *Registry) hash() {
	r.Hash = 0
	for i := range r.Credentials {
		r.Hash += hashOf(&r.Credentials[i])
	}
	for i := range r.Tokens {
		r.Hash += hashOfToken(&r.Tokens[i])
	}
	for _, name := range r.Gone {
		r.Hash += hashOfGone(name)
	}
	r.Hash += r.hashOfAuthorities()
	for i := range r.Secrets {
		r.Hash += hashOfSecret(&r.Secrets[i])
	}
}

func hashOf(o *access.Credential) uint64 {
	return fingerprint.Mix(fingerprint.Text(tag, o.Name, string(o.Key[:])), uint64(o.Kind)<<8|uint64(o.Role)) ^
		fingerprint.Words(tag, uint64(o.Until))
}

func hashOfToken(t *access.Token) uint64 {
	return fingerprint.Mix(fingerprint.Text(tag, t.ID, string(t.Node)), uint64(t.Uses)<<1|fingerprint.Bit(t.Keeper)) ^
		fingerprint.Words(tag, uint64(t.Until))
}

func hashOfGone(name terms.NodeName) uint64 { return fingerprint.Text(tag, string(name)) }

func (r *Registry) hashOfAuthorities() (h uint64) {
	for i := range r.Authorities {
		h = fingerprint.Mix(fingerprint.Text(h, r.Authorities[i].Certificate), fingerprint.Bit(r.Authorities[i].Former))
	}
	return h
}

// copy returns a registry to change, without the tokens that have ended.
func (r *Registry) copy(now terms.Time) *Registry {
	if r == nil {
		return &Registry{}
	}
	next := &Registry{Credentials: slices.Clone(r.Credentials), Tokens: slices.Clone(r.Tokens), Gone: slices.Clone(r.Gone),
		Authorities: slices.Clone(r.Authorities), Secrets: slices.Clone(r.Secrets), Hash: r.Hash}
	next.Tokens = slices.DeleteFunc(next.Tokens, func(t access.Token) bool {
		if t.Until <= now {
			next.Hash -= hashOfToken(&t)
		}
		return t.Until <= now
	})
	return next
}

// deleteFunc drops credentials.
func (r *Registry) deleteFunc(drop func(*access.Credential) bool) {
	r.Credentials = slices.DeleteFunc(r.Credentials, func(o access.Credential) bool {
		if !drop(&o) {
			return false
		}
		r.Hash -= hashOf(&o)
		return true
	})
}

// Of lists the credentials of somebody, without a copy of them.
func (r *Registry) Of(who access.Subject) []access.Credential {
	if r == nil {
		return nil
	}
	first, _ := slices.BinarySearchFunc(r.Credentials, who, func(o access.Credential, who access.Subject) int {
		return cmp.Or(cmp.Compare(o.Kind, who.Kind), cmp.Compare(o.Name, who.Name))
	})
	last := first
	for last < len(r.Credentials) && r.Credentials[last].Kind == who.Kind && r.Credentials[last].Name == who.Name {
		last++
	}
	return r.Credentials[first:last:last]
}

// Find returns a credential of somebody, by its key; nil if that is none of theirs.
func (r *Registry) Find(who access.Subject, key access.Key) *access.Credential {
	own := r.Of(who)
	for i := range own {
		if own[i].Key == key {
			return &own[i]
		}
	}
	return nil
}

// SignIn returns what lets a user sign in and gives the role, nil if that one may not.
func (r *Registry) SignIn(user string) *access.Credential {
	return r.Find(access.Subject{Kind: access.OfUser, Name: user}, access.SignInKey(user))
}

// owner returns whose a key is, nil for nobody's. It reads all.
func (r *Registry) owner(key access.Key) *access.Subject {
	for i := range r.Credentials {
		if o := &r.Credentials[i]; o.Key == key {
			return &access.Subject{Kind: o.Kind, Name: o.Name}
		}
	}
	return nil
}

// All lists the credentials of a kind in the order of their names, without a copy of them.
func (r *Registry) All(kind access.Kind) []access.Credential {
	if r == nil {
		return nil
	}
	byKind := func(o access.Credential, kind access.Kind) int { return cmp.Compare(o.Kind, kind) }
	first, _ := slices.BinarySearchFunc(r.Credentials, kind, byKind)
	last, _ := slices.BinarySearchFunc(r.Credentials, kind+1, byKind)
	return r.Credentials[first:last:last]
}

// Open lists the tokens that have not ended.
func (r *Registry) Open(now terms.Time) (all []access.Token) {
	if r == nil {
		return nil
	}
	for _, t := range r.Tokens {
		if t.Until > now {
			all = append(all, t)
		}
	}
	return all
}

// IsGone tells whether a node was removed, and not admitted again.
func (r *Registry) IsGone(node terms.NodeName) bool {
	if r == nil {
		return false
	}
	_, gone := slices.BinarySearch(r.Gone, node)
	return gone
}

// put adds a credential, in the place of another of the same somebody for the key.
func (r *Registry) put(o access.Credential) {
	at, found := slices.BinarySearchFunc(r.Credentials, o, func(a, b access.Credential) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), bytes.Compare(a.Key[:], b.Key[:]))
	})
	if r.Hash += hashOf(&o); found {
		r.Hash -= hashOf(&r.Credentials[at])
		r.Credentials[at] = o
		return
	}
	r.Credentials = slices.Insert(r.Credentials, at, o)
}

// AddUser returns the registry with a user's credential, or why there is none. If there would be too many, those are
// dropped that have ended, and only then: the clock of one machine that is far ahead must not lock out all users. With
// lowers, no other credential of the user keeps a higher role; without a role it says nothing of others.
func (r *Registry) AddUser(o access.Credential, now terms.Time, lowers bool) (*Registry, string) {
	next, who := r.copy(now), access.Subject{Kind: o.Kind, Name: o.Name}
	owner := next.owner(o.Key)
	if owner == nil && len(next.All(access.OfUser)) >= UserKeysMax {
		next.deleteFunc(func(o *access.Credential) bool { return o.Until != 0 && o.Until <= now })
	}
	switch users := len(next.All(access.OfUser)); {
	case o.Kind != access.OfUser:
		return r, "it is no user's"
	case access.NameProblem(o.Name) != "":
		return r, access.NameProblem(o.Name)
	case owner != nil && *owner != who:
		return r, fmt.Sprintf("the key is known as that of %s: make another", owner)
	case owner == nil && users >= UserKeysMax:
		return r, fmt.Sprintf("users have %d credentials, at most %d: remove some, see \"starling user ls\"", users,
			UserKeysMax)
	}
	next.put(o)
	if lowers && o.Role != access.NoRole {
		next.lower(who, o.Role)
	}
	return next, ""
}

// Remove returns the registry without the credentials of somebody; of a node it keeps that it is gone.
func (r *Registry) Remove(who access.Subject, now terms.Time) *Registry {
	next := r.copy(now)
	next.deleteFunc(func(o *access.Credential) bool { return o.Kind == who.Kind && o.Name == who.Name })
	if name := terms.NodeName(who.Name); who.Kind == access.OfNode {
		if at, gone := slices.BinarySearch(next.Gone, name); !gone {
			next.Gone = slices.Insert(next.Gone, at, name)
			next.Hash += hashOfGone(name)
		}
	}
	return next
}

// AddToken returns the registry with a token that is good for so long, or why there is none.
func (r *Registry) AddToken(t access.Token, life, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	t.Until = now + life
	at, found := slices.BinarySearchFunc(next.Tokens, t.ID, byID)
	switch {
	case t.ID == "" || t.Uses == 0 || life <= 0:
		return r, "a token must have an id, let at least one machine join, and be good for some time"
	case found:
		return r, fmt.Sprintf("token %s exists already", t.ID)
	case len(next.Tokens) >= TokensMax:
		return r, fmt.Sprintf("there are %d tokens, at most %d: remove some, see \"starling token ls\"", len(next.Tokens),
			TokensMax)
	}
	next.Tokens = slices.Insert(next.Tokens, at, t)
	next.Hash += hashOfToken(&t)
	return next, ""
}

// RemoveToken returns the registry without a token; ok is false if there is none.
func (r *Registry) RemoveToken(id string, now terms.Time) (next *Registry, ok bool) {
	next = r.copy(now)
	at, ok := slices.BinarySearchFunc(next.Tokens, id, byID)
	if !ok {
		return r, false
	}
	next.Hash -= hashOfToken(&next.Tokens[at])
	next.Tokens = slices.Delete(next.Tokens, at, at+1)
	return next, true
}

func byID(t access.Token, id string) int { return cmp.Compare(t.ID, id) }

// Admit returns the registry in which a key is a node's, or why it is not. Without the id of a token only a node is
// admitted that has no key and was not removed: what is in the cluster already makes itself known. A repetition is
// harmless. By a token a node gets a new key, in the place of what it had.
func (r *Registry) Admit(node terms.NodeName, key access.Key, token string, now terms.Time) (*Registry, string) {
	next, who := r.copy(now), access.Subject{Kind: access.OfNode, Name: string(node)}
	own := next.Of(who)
	if len(own) == 1 && own[0].Key == key {
		return r, ""
	}
	switch owner := next.owner(key); {
	case terms.NameProblem(string(node), true) != "":
		return r, fmt.Sprintf("node %q %s", node, terms.NameProblem(string(node), true))
	case owner != nil && *owner != who:
		return r, fmt.Sprintf("the key is known as that of %s", owner)
	case token == "" && next.IsGone(node):
		return r, fmt.Sprintf("node %s was removed: let it join again with a token", node)
	case token == "" && len(own) > 0:
		return r, fmt.Sprintf("node %s has another key: to give it a new one, let it join again with a token", node)
	case len(own) == 0 && len(next.All(access.OfNode)) >= NodeKeysMax:
		return r, fmt.Sprintf("there are %d nodes, at most %d", NodeKeysMax, NodeKeysMax)
	}
	if reason := next.use(token, node); token != "" && reason != "" {
		return r, reason
	}
	next.deleteFunc(func(o *access.Credential) bool { return o.Kind == who.Kind && o.Name == who.Name })
	next.put(access.Credential{Key: key, Kind: access.OfNode, Name: string(node)})
	if at, gone := slices.BinarySearch(next.Gone, node); gone {
		next.Gone = slices.Delete(next.Gone, at, at+1)
		next.Hash -= hashOfGone(node)
	}
	return next, ""
}

// use takes one of the uses of a token, or says why not.
func (r *Registry) use(token string, node terms.NodeName) string {
	at, found := slices.BinarySearchFunc(r.Tokens, token, byID)
	switch {
	case !found:
		return "the token was used before, has expired or was removed: make another with \"starling token create\""
	case r.Tokens[at].Node != "" && r.Tokens[at].Node != node:
		return fmt.Sprintf("the token is for node %s, not for %s", r.Tokens[at].Node, node)
	}
	r.Hash -= hashOfToken(&r.Tokens[at])
	if r.Tokens[at].Uses--; r.Tokens[at].Uses == 0 {
		r.Tokens = slices.Delete(r.Tokens, at, at+1)
		return ""
	}
	r.Hash += hashOfToken(&r.Tokens[at])
	return ""
}

// AddAuthority returns the registry in which another authority signs, or why it does not. Against is the one that
// signed when that was asked for. Where there are too many the oldest is forgotten that counts no more.
func (r *Registry) AddAuthority(a access.Authority, against access.Key, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	next.Hash -= next.hashOfAuthorities()
	same := func(other access.Authority) bool { return other.Certificate == a.Certificate }
	former := func(other access.Authority) bool { return other.Former }
	full, signs := len(next.Authorities) >= AuthoritiesMax, access.Key{}
	if n := len(next.Authorities); n > 0 {
		signs = next.Authorities[n-1].ID()
	}
	switch oldest := slices.IndexFunc(next.Authorities, former); {
	case a.Certificate == "":
		return r, "an authority must have a certificate"
	case slices.ContainsFunc(next.Authorities, same):
		return r, fmt.Sprintf("authority %s is known already", a.ID())
	case signs != against:
		return r, fmt.Sprintf("authority %s signs by now: look again with \"starling ca ls\"", signs)
	case full && oldest < 0:
		return r, fmt.Sprintf("%d authorities count, at most %d: remove some, see \"starling ca ls\"",
			len(next.Authorities), AuthoritiesMax)
	case full:
		next.Authorities = slices.Delete(next.Authorities, oldest, oldest+1)
	}
	next.Authorities = append(next.Authorities, access.Authority{Certificate: a.Certificate})
	next.Hash += next.hashOfAuthorities()
	return next, ""
}

// RemoveAuthority returns the registry in which an authority counts no more, or why it does; found is false if there is
// none that does.
func (r *Registry) RemoveAuthority(id access.Key, now terms.Time) (next *Registry, refusal string, found bool) {
	next = r.copy(now)
	at := slices.IndexFunc(next.Authorities, func(a access.Authority) bool { return !a.Former && a.ID() == id })
	switch {
	case at < 0:
		return r, "", false
	case at == len(next.Authorities)-1:
		return r, fmt.Sprintf("authority %s is the one that signs: replace it with \"starling ca rotate\"", id), true
	}
	if left := next.sealedBy(id); left != "" {
		return r, fmt.Sprintf("secret %s is yet sealed with the key of authority %s: a machine with the newest key does that anew in "+
			"a moment, try again", left, id), true
	}
	next.Hash -= next.hashOfAuthorities()
	next.Authorities[at].Former = true
	next.Hash += next.hashOfAuthorities()
	return next, "", true
}

// WithoutAuthorities returns the registry as that of a cluster whose authority was never replaced: for one that goes on
// from the value of another, and has its own.
func (r *Registry) WithoutAuthorities() *Registry {
	next := r.copy(0)
	next.Hash -= next.hashOfAuthorities()
	next.Authorities = nil
	return next
}

// Role returns the highest role that somebody has in the whole cluster: by credentials that have not ended at a time,
// if there are any. If a clock that is far ahead has ended all, all count; who shows one is told whether it does.
func (r *Registry) Role(who access.Subject, now terms.Time) access.Role {
	if who.Kind == access.OfLocal {
		return access.Admin
	}
	role, ended := access.NoRole, access.NoRole
	count := 0
	for _, o := range r.Of(who) {
		if o.Until != 0 && o.Until <= now {
			ended = max(ended, o.Role)
			continue
		}
		role, count = max(role, o.Role), count+1
	}
	if count == 0 {
		return ended
	}
	return role
}

// lower takes roles above one from the credentials of somebody.
func (r *Registry) lower(who access.Subject, role access.Role) {
	for _, o := range slices.Clone(r.Of(who)) {
		if o.Role > role {
			o.Role = role
			r.put(o)
		}
	}
}
