package caution

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/pool"
)

// Pools tells which pools have secrets or volumes that would be left behind after a change of the tree: who is given a
// pool of such a name next would have them.
func Pools(s *cluster.State, changed pool.Tree) (problems []terms.Problem) {
	goes := func(path terms.PoolPath) bool {
		_, stays := changed.Find(path)
		return !stays
	}
	if !slices.ContainsFunc(s.Pools(), func(p terms.Pool) bool { return goes(p.Path) }) {
		return nil
	}
	told := map[terms.PoolPath]bool{}
	add := func(path terms.PoolPath, format string, arguments ...any) {
		if goes(path) && !told[path] {
			told[path] = true
			problems = append(problems, terms.Problem{Path: string(path), Reason: fmt.Sprintf(format, arguments...)})
		}
	}
	for _, secret := range s.Registry().SecretsOf("") {
		add(secret.Pool, "must stay while it has secrets, such as %s: remove them first, see \"starling secret rm\"", secret.Name)
	}
	for _, volumes := range storage.List(s) {
		add(volumes.Set.Slot.Job.Pool(), "must stay while volumes of its jobs are kept, such as %s: remove them first, see "+
			"\"starling volume rm\"", volumes.Set)
	}
	return problems
}
