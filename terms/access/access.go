// Package access says who asks and what that one may: roles, keys, credentials and join tokens as facts, without the
// cryptography that proves them.
package access

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/terms"
	"starling/terms/codec"
)

// Role is what a user may do; each may do what those before it may.
type Role uint8

// The roles.
const (
	NoRole Role = iota
	Viewer
	Submitter
	Operator
	Admin
	roleEnd
)

// String returns the role's name.
func (r Role) String() string { return roleNames()[r] }

func roleNames() []string { return []string{"none", "viewer", "submitter", "operator", "admin"} }

// RoleNames lists the names of the roles, the least first.
func RoleNames() []string { return roleNames()[Viewer:] }

// ParseRole reads the name of a role; "none" is none.
func ParseRole(text string) (Role, error) {
	if at := slices.Index(RoleNames(), text); at >= 0 {
		return Viewer + Role(at), nil
	}
	return NoRole, fmt.Errorf("role %q must be one of %s", text, strings.Join(RoleNames(), ", "))
}

// Kind is what somebody is.
type Kind uint8

// The kinds. The zero value has shown nothing.
const (
	OfAnyone Kind = iota
	OfNode
	OfUser
	OfInstance
	// OfLocal is a user of a peer's own machine, as its kernel says.
	OfLocal
	kindEnd
)

// NameBytesMax bounds the name of somebody.
const NameBytesMax = terms.JobNameBytesMax + 2*terms.NameBytesMax

// Subject is who asked for something, as the peer that was asked has found.
type Subject struct {
	Kind Kind
	// Name is a node's or a user's, of a local user USER@NODE, and of an instance its allocation.
	Name string
}

// Code writes or reads the subject.
func (s *Subject) Code(c *codec.Coder) {
	codec.Integer(c, &s.Kind, uint64(kindEnd)-1)
	codec.Text(c, &s.Name, NameBytesMax)
}

// String says who it is, for messages.
func (s Subject) String() string {
	switch s.Kind {
	case OfNode:
		return "node " + s.Name
	case OfUser, OfLocal:
		return "user " + s.Name
	case OfInstance:
		return "instance " + s.Name
	}
	return "a client without a certificate"
}

// Asker returns who has asked for something from a text that ends with who it was, as String writes it. Instances count
// as one; "" is anybody whom the text does not name.
func Asker(text string) string {
	words := strings.Fields(text)
	if len(words) < 2 {
		return ""
	}
	kind, name := words[len(words)-2], words[len(words)-1]
	switch kind {
	case "node", "user":
		return kind + " " + name
	case "instance":
		return kind
	}
	return ""
}

// NameProblem says why nobody can be called so, "" if one can.
func NameProblem(name string) string {
	const letters, marks = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "._@-"
	if name != "" && len(name) <= 100 && strings.Contains(letters, name[:1]) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(letters+marks, r) }) {
		return ""
	}
	return fmt.Sprintf("name %q must have 1 to 100 letters, digits, dots, dashes, underscores or @, and begin with a letter "+
		"or digit", name)
}

// Key names a public key by its SHA-256.
type Key [32]byte

// String returns its first digits, enough to tell it from others.
func (k Key) String() string { return fmt.Sprintf("%x", k[:6]) }

// SignInKey stands for the right of a user to sign in: it is no key that anybody can have.
func SignInKey(user string) Key { return sha256.Sum256([]byte("starling sign-in " + user)) }

// Code writes or reads the key.
func (k *Key) Code(c *codec.Coder) {
	for i := 0; i < len(k); i += 8 {
		word := binary.BigEndian.Uint64(k[i:])
		codec.Integer(c, &word, math.MaxUint64)
		binary.BigEndian.PutUint64(k[i:], word)
	}
}

// Credential says whose a key is.
type Credential struct {
	Key Key
	// Kind is OfNode or OfUser, Name whose it is, Role a user's in the whole cluster.
	Kind Kind
	Name string
	Role Role
	// Until is when the certificate for the key ends, 0 for never. Who verifies that sees it; here it only says what may
	// be forgotten.
	Until terms.Time
}

// Code writes or reads the credential.
func (o *Credential) Code(c *codec.Coder) {
	o.Key.Code(c)
	codec.Integer(c, &o.Kind, uint64(OfUser))
	codec.Text(c, &o.Name, NameBytesMax)
	codec.Integer(c, &o.Role, uint64(roleEnd)-1)
	codec.Integer(c, &o.Until, math.MaxInt64)
}

// Limits of a token.
const (
	// TokenIDBytesMax bounds the id of a token.
	TokenIDBytesMax = 64
	// TokenUsesMax bounds how many machines join by one.
	TokenUsesMax = 1000
	// TokenLifeMillisMax is 30 days.
	TokenLifeMillisMax = 30 * 24 * 60 * 60 * 1000
)

// Token lets machines join.
type Token struct {
	ID string
	// Node is the only one that may join by it, "" for any.
	Node terms.NodeName
	// Keeper gives what joins the key of the cluster's authority.
	Keeper bool
	// Until is when it ends; Uses is how many machines may join by it yet.
	Until terms.Time
	Uses  uint32
}

// Code writes or reads the token.
func (t *Token) Code(c *codec.Coder) {
	codec.Text(c, &t.ID, TokenIDBytesMax)
	codec.Text(c, &t.Node, terms.NameBytesMax)
	codec.Flags(c, &t.Keeper)
	codec.Integer(c, &t.Until, math.MaxInt64)
	codec.Integer(c, &t.Uses, TokenUsesMax)
}

// AuthorityBytesMax bounds the certificate of an authority.
const AuthorityBytesMax = 2048

// Authority signs for nodes and users, or did.
type Authority struct {
	// Certificate is in DER, as base64 has it.
	Certificate string
	// Former tells that what it has signed does not count any more. It still shows who came after it.
	Former bool
}

// ID names the authority by the SHA-256 of its certificate.
func (a Authority) ID() Key { return sha256.Sum256([]byte(a.Certificate)) }

// Code writes or reads the authority.
func (a *Authority) Code(c *codec.Coder) {
	codec.Text(c, &a.Certificate, AuthorityBytesMax)
	codec.Flags(c, &a.Former)
}
