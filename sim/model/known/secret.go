package known

import (
	"cmp"
	"fmt"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

func called(s *access.Secret) string { return string(s.Pool) + "/" + s.Name }

// seals tells whether a version of a secret is sealed with the key of an authority.
func (t *Twin) seals(id access.Key) bool {
	for _, versions := range t.secrets {
		if slices.ContainsFunc(versions, func(s access.Secret) bool { return s.Key == id }) {
			return true
		}
	}
	return false
}

// isGood tells whether a secret is sealed with a key that counts.
func (t *Twin) isGood(s *access.Secret) bool {
	return s.Sealed != "" && (len(t.signed) == 0 ||
		slices.ContainsFunc(t.signed, func(a access.Authority) bool { return !a.Former && a.ID() == s.Key }))
}

// obeySecret applies a request about a secret.
func (t *Twin) obeySecret(c command.Command, a *Around) bool {
	switch c := c.(type) {
	case *command.PutSecret:
		return t.putSecret(c.Secret, a)
	case *command.SealSecret:
		versions := t.secrets[called(&c.Secret)]
		at := slices.IndexFunc(versions, func(s access.Secret) bool { return s.Version == c.Secret.Version })
		if !slices.Contains(a.Members, a.Author) || at < 0 || !t.isGood(&c.Secret) {
			return false
		}
		versions[at].Key, versions[at].Sealed = c.Secret.Key, c.Secret.Sealed
	case *command.RemoveSecret:
		name := called(&access.Secret{Pool: c.Pool, Name: c.Name})
		versions := t.secrets[name]
		if c.Version == 0 {
			delete(t.secrets, name)
			return len(versions) > 0
		}
		at := slices.IndexFunc(versions, func(s access.Secret) bool { return s.Version == c.Version })
		if at < 0 || at == len(versions)-1 {
			return false
		}
		t.secrets[name] = slices.Delete(versions, at, at+1)
	}
	return true
}

// putSecret makes the next version of a secret. How much all may hold is not reached here.
func (t *Twin) putSecret(one access.Secret, a *Around) bool {
	versions := t.secrets[called(&one)]
	if !slices.ContainsFunc(a.Pools, func(p terms.Pool) bool { return p.Path == one.Pool }) || !t.isGood(&one) ||
		terms.NameProblem(one.Name, false) != "" {
		return false
	}
	one.Version, one.At = 1, a.Time
	if len(versions) > 0 {
		one.Version = versions[len(versions)-1].Version + 1
	}
	if a.Rules < rules.SecretVersions {
		versions = nil
	}
	if len(versions) == registry.SecretVersionsMax {
		old := slices.IndexFunc(versions, func(s access.Secret) bool { return !reads(a.Open(), &s) })
		if old < 0 {
			return false
		}
		versions = slices.Delete(versions, old, old+1)
	}
	t.secrets[called(&one)] = append(versions, one)
	return true
}

// reads tells whether a task names a version of a secret.
func reads(jobs []facts.JobVersion, s *access.Secret) bool {
	return slices.ContainsFunc(jobs, func(v facts.JobVersion) bool {
		return v.Spec.Name.Pool() == s.Pool && slices.ContainsFunc(v.Spec.Tasks, func(t terms.Task) bool {
			return slices.ContainsFunc(t.PoolSecrets(), func(u terms.SecretUse) bool {
				return u.Name == s.Name && u.Version == s.Version
			})
		})
	})
}

// secretDifferences compares the secrets with those of the registry.
func (t *Twin) secretDifferences(r *registry.Registry) (found []string) {
	var slow []access.Secret
	for _, versions := range t.secrets {
		slow = append(slow, versions...)
	}
	slices.SortFunc(slow, func(a, b access.Secret) int {
		return cmp.Or(a.Pool.Compare(b.Pool), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	if fast := r.SecretsOf(""); !slices.Equal(fast, slow) {
		found = append(found, fmt.Sprintf("secrets: the fold has %+v, the model %+v", fast, slow))
	}
	return found
}
