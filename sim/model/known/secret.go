package known

import (
	"fmt"
	"slices"

	"starling/cluster/registry"
	"starling/command"
	"starling/terms"
	"starling/terms/access"
)

func called(s *access.Secret) string { return string(s.Pool) + "/" + s.Name }

// seals tells whether a secret is sealed with the key of an authority.
func (t *Twin) seals(id access.Key) bool {
	for _, s := range t.secrets {
		if s.Key == id {
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
		one := c.Secret
		old, found := t.secrets[called(&one)]
		if !slices.ContainsFunc(a.Pools, func(p terms.Pool) bool { return p.Path == one.Pool }) ||
			!t.isGood(&one) || terms.NameProblem(one.Name, false) != "" || !found && len(t.secrets) >= registry.SecretsMax {
			return false
		}
		one.Version, one.At = old.Version+1, a.Time
		t.secrets[called(&one)] = one
	case *command.SealSecret:
		one := c.Secret
		old, found := t.secrets[called(&one)]
		if !slices.Contains(a.Members, a.Author) || !found || old.Version != one.Version || !t.isGood(&one) {
			return false
		}
		one.At = old.At
		t.secrets[called(&one)] = one
	case *command.RemoveSecret:
		name := called(&access.Secret{Pool: c.Pool, Name: c.Name})
		_, found := t.secrets[name]
		delete(t.secrets, name)
		return found
	}
	return true
}

// secretDifferences compares the secrets with those of the registry.
func (t *Twin) secretDifferences(r *registry.Registry) (found []string) {
	all := r.SecretsOf("")
	if len(all) != len(t.secrets) {
		found = append(found, fmt.Sprintf("secrets: the fold has %d, the model %d", len(all), len(t.secrets)))
	}
	for i := range all {
		if slow := t.secrets[called(&all[i])]; slow != all[i] {
			found = append(found, fmt.Sprintf("secret %s: the fold has %+v, the model %+v", called(&all[i]), all[i], slow))
		}
	}
	return found
}
