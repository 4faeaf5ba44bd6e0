package trust

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"starling/terms"
	"starling/terms/access"
)

// saltBytes is the size of what makes the key of each version of a secret another one.
const saltBytes = 32

// SealSecret seals what a secret holds, so that only nodes open it that hold the key of the authority by which this one
// signs.
func (k *Keys) SealSecret(pool terms.PoolPath, name string, value []byte) (access.Secret, error) {
	by := k.signer()
	if by == nil {
		return access.Secret{}, ErrNotKeeper
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	lock, err := by.lock(salt)
	if err != nil {
		return access.Secret{}, err
	}
	s := access.Secret{Pool: pool, Name: name, Key: Listed(by.Certificate).ID()}
	s.Sealed = base64.StdEncoding.EncodeToString(lock.Seal(salt, make([]byte, lock.NonceSize()), value, label(&s)))
	return s, nil
}

// ErrLost tells that a secret is sealed with the key of an authority that does not count here: nobody can open it.
var ErrLost = errors.New("which does not count here, as after a restore: put it again")

// OpenSecret returns what a secret holds. The error is ErrNotKeeper where this node does not hold the key, and ErrLost
// where nobody does.
func (k *Keys) OpenSecret(s *access.Secret) ([]byte, error) {
	for _, by := range k.known.Load().held() {
		if Listed(by.Certificate).ID() != s.Key {
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(s.Sealed)
		if err != nil || len(sealed) < saltBytes {
			return nil, fmt.Errorf("secret %s was altered", label(s))
		}
		lock, err := by.lock(sealed[:saltBytes])
		if err != nil {
			return nil, err
		}
		value, err := lock.Open(nil, make([]byte, lock.NonceSize()), sealed[saltBytes:], label(s))
		if err != nil {
			return nil, fmt.Errorf("secret %s was altered", label(s))
		}
		return value, nil
	}
	if !slices.ContainsFunc(k.known.Load().counting, func(c *x509.Certificate) bool { return Listed(c).ID() == s.Key }) {
		return nil, fmt.Errorf("secret %s is sealed with the key of authority %s, %w", label(s), s.Key, ErrLost)
	}
	return nil, ErrNotKeeper
}

// label is what a secret is called: sealed under one name it does not open under another.
func label(s *access.Secret) []byte { return []byte(string(s.Pool) + "/" + s.Name) }

// lock seals one version of one secret: its key is of that alone, so that it needs no nonce.
func (a *Authority) lock(salt []byte) (cipher.AEAD, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, der, salt, "starling secrets of pools", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// SealsAnew seals a secret with the key by which this node signs, if it is sealed with an older one that this node
// holds; ok is false if nothing is to be done.
func (k *Keys) SealsAnew(s *access.Secret) (anew access.Secret, ok bool, err error) {
	by := k.signer()
	if by == nil || Listed(by.Certificate).ID() == s.Key {
		return anew, false, nil
	}
	value, err := k.OpenSecret(s)
	if errors.Is(err, ErrNotKeeper) {
		return anew, false, nil
	}
	if err == nil {
		anew, err = k.SealSecret(s.Pool, s.Name, value)
	}
	anew.Version = s.Version
	return anew, err == nil, err
}
