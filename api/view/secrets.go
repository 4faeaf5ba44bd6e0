package view

import (
	"fmt"

	"starling/cluster"
	"starling/cluster/workload"
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
