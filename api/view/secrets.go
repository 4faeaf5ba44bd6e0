package view

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/registry"
	"starling/cluster/workload"
	"starling/command"
	"starling/replica/report"
	"starling/terms/access"
)

// JobsBySecret lists the jobs that have not finished by the secrets that they name, POOL/NAME, and by their versions,
// POOL/NAME@VERSION.
func JobsBySecret(state *cluster.State) map[string][]string {
	used := map[string][]string{}
	state.EachJobByName("", func(j *workload.Job) bool {
		if j.Finished != 0 {
			return true
		}
		named := map[string]bool{}
		for i := range j.Spec.Tasks {
			t, pool := &j.Spec.Tasks[i], string(j.Spec.Name.Pool())
			for _, s := range t.PoolSecrets() {
				named[pool+"/"+s.Name] = true
				named[fmt.Sprint(pool, "/", s.Name, "@", s.Version)] = true
			}
			if t.Container.PullSecret != "" {
				named[pool+"/"+t.Container.PullSecret] = true
			}
		}
		for secret := range named {
			used[secret] = append(used[secret], string(j.Spec.Name))
		}
		return true
	})
	return used
}

// SecretPuts finds which version of a secret a put became, of which others may have been put at the same time.
type SecretPuts struct {
	// First is what was put.
	First access.Secret
	// all begins with it; the others of the same name follow in the order of the journal.
	all []access.Secret
}

// Read notes the puts of an entry; the entries come in their order, from that of the first on.
func (p *SecretPuts) Read(folded *report.Folded) error {
	for i, result := range folded.Outcome.Results {
		put, ok := folded.Entry.Commands[i].(*command.PutSecret)
		if ok && !result.Refused() && put.Secret.Pool == p.First.Pool && put.Secret.Name == p.First.Name &&
			(len(p.all) > 0 || put.Secret.Sealed == p.First.Sealed) {
			p.all = append(p.all, put.Secret)
		}
	}
	return nil
}

// Version returns the version that the first became. It may be kept no more; then a later one that is kept tells it.
// Where none of them is, it is the newest.
func (p *SecretPuts) Version(known *registry.Registry) uint32 {
	kept := known.SecretsOf(p.First.Pool)
	for later, put := range p.all {
		for _, one := range kept {
			if one.Name == put.Name && one.Sealed == put.Sealed && one.Version > uint32(later) {
				return one.Version - uint32(later)
			}
		}
	}
	if newest := known.Secret(p.First.Pool, p.First.Name, 0); newest != nil {
		return newest.Version
	}
	return 0
}
