package registry

import (
	"cmp"
	"fmt"
	"slices"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/fingerprint"
)

// Limits of secrets.
const (
	// SecretsMax bounds how many there are, secretsBytesMax what is sealed of all together.
	SecretsMax      = 10_000
	secretsBytesMax = 16 << 20
)

func hashOfSecret(s *access.Secret) uint64 {
	return fingerprint.Mix(fingerprint.Text(tag, string(s.Pool), s.Name, string(s.Key[:]), s.Sealed), uint64(s.Version)) ^
		fingerprint.Words(tag, uint64(s.At))
}

func (r *Registry) findSecret(pool terms.PoolPath, name string) (int, bool) {
	return slices.BinarySearchFunc(r.Secrets, name, func(s access.Secret, name string) int {
		return cmp.Or(s.Pool.Compare(pool), cmp.Compare(s.Name, name))
	})
}

// Secret returns a version of a secret, 0 for the newest; nil if there is none.
func (r *Registry) Secret(pool terms.PoolPath, name string, version uint32) *access.Secret {
	if r == nil {
		return nil
	}
	at, found := r.findSecret(pool, name)
	if !found || version != 0 && r.Secrets[at].Version != version {
		return nil
	}
	return &r.Secrets[at]
}

// SecretsOf returns the secrets of a pool, "" for those of all.
func (r *Registry) SecretsOf(pool terms.PoolPath) (all []access.Secret) {
	if r == nil {
		return nil
	}
	for _, s := range r.Secrets {
		if pool == "" || s.Pool == pool {
			all = append(all, s)
		}
	}
	return all
}

// sealedBy names a secret that is sealed with the key of an authority, "" if none is.
func (r *Registry) sealedBy(id access.Key) string {
	at := slices.IndexFunc(r.Secrets, func(s access.Secret) bool { return s.Key == id })
	if at < 0 {
		return ""
	}
	return string(r.Secrets[at].Pool) + "/" + r.Secrets[at].Name
}

// counts tells whether what is sealed with an authority's key may be kept: until the first is replaced none is listed.
func (r *Registry) counts(id access.Key) bool {
	return len(r.Authorities) == 0 ||
		slices.ContainsFunc(r.Authorities, func(a access.Authority) bool { return !a.Former && a.ID() == id })
}

// PutSecret returns the registry with the next version of a secret, or why there is none.
func (r *Registry) PutSecret(s access.Secret, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	at, found := next.findSecret(s.Pool, s.Name)
	bytes := len(s.Sealed)
	for i := range next.Secrets {
		bytes += len(next.Secrets[i].Sealed)
	}
	s.Version, s.At = 1, now
	if found {
		s.Version = next.Secrets[at].Version + 1
		bytes -= len(next.Secrets[at].Sealed)
	}
	switch {
	case terms.NameProblem(s.Name, false) != "":
		return r, fmt.Sprintf("the name of a secret %s", terms.NameProblem(s.Name, false))
	case s.Sealed == "" || !next.counts(s.Key):
		return r, "it is not sealed with the key of an authority that counts: try again"
	case !found && len(next.Secrets) >= SecretsMax:
		return r, fmt.Sprintf("there are %d secrets, at most %[1]d: remove some, see \"starling secret ls\"", SecretsMax)
	case bytes > secretsBytesMax:
		return r, fmt.Sprintf("the secrets of the cluster would take %d bytes, at most %d: remove some, see \"starling secret ls\"",
			bytes, secretsBytesMax)
	case found:
		next.Hash -= hashOfSecret(&next.Secrets[at])
		next.Secrets[at] = s
	default:
		next.Secrets = slices.Insert(next.Secrets, at, s)
	}
	next.Hash += hashOfSecret(&s)
	return next, ""
}

// SealSecret returns the registry in which a version of a secret is sealed with another key, or why it is not.
func (r *Registry) SealSecret(s access.Secret, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	at, found := next.findSecret(s.Pool, s.Name)
	switch {
	case !found || next.Secrets[at].Version != s.Version:
		return r, fmt.Sprintf("secret %s/%s has no version %d any more", s.Pool, s.Name, s.Version)
	case s.Sealed == "" || !next.counts(s.Key):
		return r, "it is not sealed with the key of an authority that counts"
	}
	s.At = next.Secrets[at].At
	next.Hash += hashOfSecret(&s) - hashOfSecret(&next.Secrets[at])
	next.Secrets[at] = s
	return next, ""
}

// RemoveSecret returns the registry without a secret; ok is false if there is none.
func (r *Registry) RemoveSecret(pool terms.PoolPath, name string, now terms.Time) (next *Registry, ok bool) {
	next = r.copy(now)
	at, ok := next.findSecret(pool, name)
	if !ok {
		return r, false
	}
	next.Hash -= hashOfSecret(&next.Secrets[at])
	next.Secrets = slices.Delete(next.Secrets, at, at+1)
	return next, true
}
