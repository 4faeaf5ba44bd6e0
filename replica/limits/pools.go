package limits

import (
	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/pool"
)

// Pools returns the tree of pools as it would be changed, or refuses the change.
func Pools(s *cluster.State, c *command.ChangePools) ([]terms.Pool, report.Result) {
	if present := s.PoolsVersion(); c.Against != 0 && c.Against != present {
		return nil, report.Refuse(facts.Conflict,
			"the pools have version %d by now: they were changed against version %d", present, c.Against)
	}
	for _, path := range c.Gone {
		if _, found := s.PoolNumber(path); !found {
			return nil, report.Refuse(facts.NotFound, "there is no pool %s", path)
		}
	}
	changed := pool.Tree(s.Pools()).Change(c.Pools, c.Gone)
	if problems := changed.Problems(s.BusyPools()); len(problems) > 0 {
		return nil, report.Refuse(facts.Invalid, "%s: %s", problems[0].Path, problems[0].Reason)
	}
	if most := s.Limits.Pools; uint64(len(changed)) > uint64(most) {
		return nil, report.Refuse(facts.Exhausted, "there would be %d pools, at most %d: remove some", len(changed), most)
	}
	return changed, report.Result{}
}

// Leaf refuses a job for whose pool there is no leaf.
func Leaf(s *cluster.State, spec *terms.Job) report.Result {
	path := spec.Name.Pool()
	number, found := s.PoolNumber(path)
	switch {
	case !found:
		return report.Refuse(facts.NotFound, "there is no pool %s: create it, or name another", path)
	case !pool.Tree(s.Pools()).Leaf(number):
		return report.Refuse(facts.Invalid, "pool %s has pools below it, such as %s: jobs live in pools with none below", path,
			s.Pools()[number+1].Path)
	}
	return report.Result{}
}

// sharing refuses a new version that shares its pool in another way, on which what runs was admitted.
func sharing(old, spec *terms.Job) report.Result {
	for _, field := range [...]struct {
		name     string
		old, now bool
	}{
		{"preemptible", !old.NonPreemptible(), !spec.NonPreemptible()},
		{"revocable", old.Revocable, spec.Revocable}, {"controller", old.Controller, spec.Controller},
	} {
		if field.old != field.now {
			return report.Refuse(facts.Conflict, "job %s has %s: %v, which cannot change: stop it first", spec.Name, field.name,
				field.old)
		}
	}
	return report.Result{}
}
