package command

import (
	"starling/terms"
	"starling/terms/access"
	"starling/terms/codec"
)

// As is a command with who asked for it, as the peer has found that wrote it.
type As struct {
	Subject access.Subject
	Command Command
}

// AddUser makes a credential of a user count.
type AddUser struct {
	RequestID  string
	Credential access.Credential
}

// RemoveUser ends all credentials of a user.
type RemoveUser struct{ RequestID, Name string }

// AddToken makes a join token count for so long. It says how long and not until when, for the clock of one machine may
// be ahead of that of the cluster's: when it ends is for the fold to say.
type AddToken struct {
	RequestID  string
	Token      access.Token
	LifeMillis uint64
}

// RemoveToken ends a join token.
type RemoveToken struct{ RequestID, ID string }

// AdmitNode makes a key that of a node: by a token that the node has shown to the author, or without one if its author
// lives on the node.
type AdmitNode struct {
	Node  terms.NodeName
	Key   access.Key
	Token string
}

// RemoveNode takes a node out of the cluster for good: its peer leaves, and its key does not count any more.
type RemoveNode struct {
	RequestID string
	Node      terms.NodeName
	// IsOff says that nothing runs on it any more: what ends itself without its peer is not waited for. RemoveNode has it
	// since rules.EndNow.
	IsOff bool
}

// AddAuthority lets what an authority signs count; it signs from now on.
type AddAuthority struct {
	RequestID string
	// Against names the authority that signed when the writer looked, zeros for none; the command is refused if it is
	// another.
	Against access.Key
	// Certificate is the authority's, as access.Authority has it.
	Certificate string
}

// RemoveAuthority ends an authority: what it has signed does not count any more.
type RemoveAuthority struct {
	RequestID string
	ID        access.Key
}

// PutSecret makes a secret of a pool, or its next version. Version and time are for the fold to say.
type PutSecret struct {
	RequestID string
	Secret    access.Secret
}

// SealSecret seals a version of a secret with another key. Its author is a member.
type SealSecret struct{ Secret access.Secret }

// RemoveSecret ends a version of a secret, 0 for all that it has.
type RemoveSecret struct {
	RequestID string
	Pool      terms.PoolPath
	Name      string
	// Version is not the newest. Since rules.KeptVolumes.
	Version uint32
}

// TakeSnapshot lets a snapshot be due now, so that the journal can be trimmed. Its author is a member.
type TakeSnapshot struct{}

// Kind returns KindAs.
func (*As) Kind() Kind { return KindAs }

// Kind returns KindAddUser.
func (*AddUser) Kind() Kind { return KindAddUser }

// Kind returns KindRemoveUser.
func (*RemoveUser) Kind() Kind { return KindRemoveUser }

// Kind returns KindAddToken.
func (*AddToken) Kind() Kind { return KindAddToken }

// Kind returns KindRemoveToken.
func (*RemoveToken) Kind() Kind { return KindRemoveToken }

// Kind returns KindAdmitNode.
func (*AdmitNode) Kind() Kind { return KindAdmitNode }

// Kind returns KindRemoveNode.
func (*RemoveNode) Kind() Kind { return KindRemoveNode }

// Kind returns KindTakeSnapshot.
func (*TakeSnapshot) Kind() Kind { return KindTakeSnapshot }

// Kind returns KindAddAuthority.
func (*AddAuthority) Kind() Kind { return KindAddAuthority }

// Kind returns KindRemoveAuthority.
func (*RemoveAuthority) Kind() Kind { return KindRemoveAuthority }

// Kind returns KindPutSecret.
func (*PutSecret) Kind() Kind { return KindPutSecret }

// Kind returns KindSealSecret.
func (*SealSecret) Kind() Kind { return KindSealSecret }

// Kind returns KindRemoveSecret.
func (*RemoveSecret) Kind() Kind { return KindRemoveSecret }

func (m *As) code(c *codec.Coder) {
	m.Subject.Code(c)
	if c.Writing {
		frame(c, m.Command)
		return
	}
	if m.Command = decodeCommand(c); m.Command != nil && m.Command.Kind() == KindAs {
		c.Fail("is within another")
	}
}

func (m *AddUser) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	m.Credential.Code(c)
}

func (m *RemoveUser) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Text(c, &m.Name, access.NameBytesMax)
}

func (m *AddToken) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	m.Token.Code(c)
	codec.Integer(c, &m.LifeMillis, access.TokenLifeMillisMax)
}

func (m *RemoveToken) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Text(c, &m.ID, access.TokenIDBytesMax)
}

func (m *AdmitNode) code(c *codec.Coder) {
	codec.Text(c, &m.Node, terms.NameBytesMax)
	m.Key.Code(c)
	codec.Text(c, &m.Token, access.TokenIDBytesMax)
}

func (m *RemoveNode) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	codec.Text(c, &m.Node, terms.NameBytesMax)
	if c.Version >= withIsOff {
		codec.Flags(c, &m.IsOff)
	}
}

func (m *AddAuthority) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	m.Against.Code(c)
	codec.Text(c, &m.Certificate, access.AuthorityBytesMax)
}

func (m *RemoveAuthority) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	m.ID.Code(c)
}

func (m *PutSecret) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	m.Secret.Code(c)
}

func (m *SealSecret) code(c *codec.Coder) { m.Secret.Code(c) }

func (m *RemoveSecret) code(c *codec.Coder) {
	requestID(c, &m.RequestID)
	terms.CodePoolPath(c, &m.Pool)
	codec.Text(c, &m.Name, terms.NameBytesMax)
	if c.Version >= ofVersion {
		codec.Uint32s(c, &m.Version)
	}
}

func (m *TakeSnapshot) code(*codec.Coder) {}

// Plain returns the command that a user asked for, without who that is.
func Plain(one Command) Command {
	if as, ok := one.(*As); ok {
		return as.Command
	}
	return one
}
