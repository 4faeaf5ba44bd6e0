package registry

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"starling/terms"
	"starling/terms/access"
	"starling/terms/fingerprint"
)

// Limits of secrets.
const (
	// SecretsMax bounds how many there are, each version counted, secretsBytesMax what is sealed of all together.
	SecretsMax      = 10_000
	secretsBytesMax = 16 << 20
	// SecretVersionsMax bounds the versions of a secret.
	SecretVersionsMax = 5
	// PoolShare bounds what one pool may have of both: one part in so many.
	PoolShare = 4
)

func hashOfSecret(s *access.Secret) uint64 {
	return fingerprint.Mix(fingerprint.Text(tag, string(s.Pool), s.Name, string(s.Key[:]), s.Sealed), uint64(s.Version)) ^
		fingerprint.Words(tag, uint64(s.At))
}

func (r *Registry) findSecret(pool terms.PoolPath, name string, version uint32) (int, bool) {
	return slices.BinarySearchFunc(r.Secrets, name, func(s access.Secret, name string) int {
		return cmp.Or(s.Pool.Compare(pool), cmp.Compare(s.Name, name), cmp.Compare(s.Version, version))
	})
}

// versionsOf returns the versions of a secret, oldest first.
func (r *Registry) versionsOf(pool terms.PoolPath, name string) []access.Secret {
	first, _ := r.findSecret(pool, name, 0)
	last, found := r.findSecret(pool, name, math.MaxUint32)
	if found {
		last++
	}
	return r.Secrets[first:last]
}

// Secret returns a version of a secret, 0 for the newest; nil if there is none.
func (r *Registry) Secret(pool terms.PoolPath, name string, version uint32) *access.Secret {
	if r == nil {
		return nil
	}
	if version != 0 {
		if at, found := r.findSecret(pool, name, version); found {
			return &r.Secrets[at]
		}
		return nil
	}
	all := r.versionsOf(pool, name)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// SecretsOf returns all versions of the secrets of a pool, "" for those of all pools, those of each side by side and
// oldest first.
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

// Kept says which versions of a secret stay when another is put.
type Kept struct {
	// Most is how many there may be, with the new one.
	Most int
	// Named tells whether a job needs one, nil if none does.
	Named func(version uint32) bool
	// PoolShare bounds what the pool may have of all, one part in so many; 0 for all of it.
	PoolShare int
}

// PutSecret returns the registry with the next version of a secret, or why there is none. Where there is no room, the
// oldest versions that no job needs go.
func (r *Registry) PutSecret(s access.Secret, kept Kept, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	s.Version, s.At = 1, now
	if newest := next.Secret(s.Pool, s.Name, 0); newest != nil {
		s.Version = newest.Version + 1
	}
	switch {
	case terms.NameProblem(s.Name, false) != "":
		return r, fmt.Sprintf("the name of a secret %s", terms.NameProblem(s.Name, false))
	case s.Sealed == "" || !next.counts(s.Key):
		return r, "it is not sealed with the key of an authority that counts: try again"
	}
	for {
		refusal := next.noRoom(&s, &kept)
		if refusal == "" {
			break
		}
		all := next.versionsOf(s.Pool, s.Name)
		old := slices.IndexFunc(all, func(v access.Secret) bool { return kept.Named == nil || !kept.Named(v.Version) })
		if old < 0 {
			return r, refusal
		}
		next.dropSecret(&all[old])
	}
	at, _ := next.findSecret(s.Pool, s.Name, s.Version)
	next.Secrets = slices.Insert(next.Secrets, at, s)
	next.Hash += hashOfSecret(&s)
	return next, ""
}

// noRoom tells why a version of a secret cannot be added, "" if it can.
func (r *Registry) noRoom(s *access.Secret, kept *Kept) string {
	const remove = "remove some, see \"starling secret ls\""
	share, inPool, bytes, bytesInPool := max(kept.PoolShare, 1), 0, len(s.Sealed), len(s.Sealed)
	for i := range r.Secrets {
		size := len(r.Secrets[i].Sealed)
		if bytes += size; r.Secrets[i].Pool == s.Pool {
			inPool, bytesInPool = inPool+1, bytesInPool+size
		}
	}
	switch versions := len(r.versionsOf(s.Pool, s.Name)); {
	case versions >= kept.Most:
		return fmt.Sprintf("jobs name all %d versions of it that are kept: have them name newer ones, see \"starling secret ls\"",
			versions)
	case len(r.Secrets) >= SecretsMax:
		return fmt.Sprintf("there are %d secrets, at most %[1]d: %s", SecretsMax, remove)
	case bytes > secretsBytesMax:
		return fmt.Sprintf("the secrets of the cluster would take %d bytes, at most %d: %s", bytes, secretsBytesMax, remove)
	case inPool >= SecretsMax/share:
		return fmt.Sprintf("there are %d secrets in pool %s, at most %[1]d: %s", inPool, s.Pool, remove)
	case bytesInPool > secretsBytesMax/share:
		return fmt.Sprintf("the secrets of pool %s would take %d bytes, at most %d: %s", s.Pool, bytesInPool,
			secretsBytesMax/share, remove)
	}
	return ""
}

// dropSecret takes a version of a secret out.
func (r *Registry) dropSecret(s *access.Secret) {
	r.Hash -= hashOfSecret(s)
	at, _ := r.findSecret(s.Pool, s.Name, s.Version)
	r.Secrets = slices.Delete(r.Secrets, at, at+1)
}

// SealSecret returns the registry in which a version of a secret is sealed with another key, or why it is not.
func (r *Registry) SealSecret(s access.Secret, now terms.Time) (*Registry, string) {
	next := r.copy(now)
	at, found := next.findSecret(s.Pool, s.Name, s.Version)
	switch {
	case !found:
		return r, fmt.Sprintf("secret %s/%s has no version %d any more", s.Pool, s.Name, s.Version)
	case s.Sealed == "" || !next.counts(s.Key):
		return r, "it is not sealed with the key of an authority that counts"
	}
	s.At = next.Secrets[at].At
	next.Hash += hashOfSecret(&s) - hashOfSecret(&next.Secrets[at])
	next.Secrets[at] = s
	return next, ""
}

// RemoveSecret returns the registry without a version of a secret, 0 for all that it has; ok is false if there is none.
func (r *Registry) RemoveSecret(pool terms.PoolPath, name string, version uint32, now terms.Time) (next *Registry,
	ok bool) {
	next = r.copy(now)
	for _, one := range slices.Clone(next.versionsOf(pool, name)) {
		if version == 0 || one.Version == version {
			next.dropSecret(&one)
			ok = true
		}
	}
	return next, ok
}
