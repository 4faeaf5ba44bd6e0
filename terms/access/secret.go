package access

import (
	"math"

	"starling/terms"
	"starling/terms/codec"
)

// Limits of secrets.
const (
	// SecretBytesMax bounds what a secret holds, SealedBytesMax what is sealed of it.
	SecretBytesMax = 64 << 10
	SealedBytesMax = SecretBytesMax*4/3 + 256
)

// Secret is what instances of a pool's jobs may read, sealed: only nodes that hold the key of the authority open it.
type Secret struct {
	Pool terms.PoolPath
	Name string
	// Version counts how often it was put.
	Version uint32
	// Key names the authority with whose key it is sealed.
	Key    Key
	Sealed string
	// At is when it was put.
	At terms.Time
}

// SecretVersion tells what was put from all else that ever was under the name: a secret that was removed and put again
// begins anew with version 1.
type SecretVersion struct {
	Version uint32
	At      terms.Time
}

// Put returns which version it is.
func (s *Secret) Put() SecretVersion { return SecretVersion{s.Version, s.At} }

// Code writes or reads the secret.
func (s *Secret) Code(c *codec.Coder) {
	terms.CodePoolPath(c, &s.Pool)
	codec.Text(c, &s.Name, terms.NameBytesMax)
	codec.Integer(c, &s.Version, math.MaxUint32)
	s.Key.Code(c)
	codec.Text(c, &s.Sealed, SealedBytesMax)
	codec.Integer(c, &s.At, math.MaxInt64)
}
