package enrol

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/registry"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// putSecret makes a secret, or its next version, in a pool that exists.
func putSecret(s *cluster.State, c *command.PutSecret) report.Result {
	if _, found := s.PoolNumber(c.Secret.Pool); !found {
		return report.Refuse(facts.NotFound, "there is no pool %s: see \"starling pool ls\"", c.Secret.Pool)
	}
	kept := registry.Kept{Most: 1} // before rules.SecretVersions
	if s.Rules >= rules.SecretVersions {
		kept = registry.Kept{Most: registry.SecretVersionsMax, Named: named(s, &c.Secret)}
	}
	if s.Rules >= rules.VaultSecrets {
		kept.PoolShare = registry.PoolShare
	}
	next, refusal := s.Registry().PutSecret(c.Secret, kept, s.Time)
	return set(s, next, refusal)
}

// named tells of the versions of a secret whether a job that has not finished names it, in any version to which its
// instances may come back.
func named(s *cluster.State, secret *access.Secret) func(version uint32) bool {
	var all map[uint32]bool // made once it is asked for: it takes all jobs
	note := func(spec *terms.Job) {
		for i := range spec.Tasks {
			for _, use := range spec.Tasks[i].PoolSecrets() {
				all[use.Version] = all[use.Version] || use.Name == secret.Name
			}
		}
	}
	return func(version uint32) bool {
		if all == nil {
			all = map[uint32]bool{}
			s.EachJob(func(j *workload.Job) bool {
				if s.Visit(1); j.Finished != 0 || j.Name().Pool() != secret.Pool {
					return true
				}
				for i := range j.Versions {
					note(j.Versions[i].Spec)
				}
				return true
			})
		}
		return all[version]
	}
}

// sealSecret seals a version of a secret anew, at the word of a member.
func sealSecret(s *cluster.State, author terms.PeerID, c *command.SealSecret) report.Result {
	if !s.IsMember(author) {
		return report.Refuse(facts.Denied, "%s is not a member", author)
	}
	next, refusal := s.Registry().SealSecret(c.Secret, s.Time)
	return set(s, next, refusal)
}

// removeSecret ends a secret, or a version of it that is not the newest: no number is given twice. What was started
// with it keeps it.
func removeSecret(s *cluster.State, c *command.RemoveSecret) report.Result {
	newest := s.Registry().Secret(c.Pool, c.Name, 0)
	if newest == nil {
		return report.Refuse(facts.NotFound, "pool %s has no secret %s: see \"starling secret ls\"", c.Pool, c.Name)
	}
	if c.Version == newest.Version {
		return report.Refuse(facts.Conflict, "version %d is the newest of secret %s/%s: put another first, or remove them all",
			c.Version, c.Pool, c.Name)
	}
	next, found := s.Registry().RemoveSecret(c.Pool, c.Name, c.Version, s.Time)
	if !found {
		return report.Refuse(facts.NotFound, "secret %s/%s has no version %d: see \"starling secret show\"", c.Pool, c.Name,
			c.Version)
	}
	return set(s, next, "")
}
