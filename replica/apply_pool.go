package replica

import (
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/report"
	"starling/terms"
	"starling/terms/pool"
)

// changePools changes the tree of resource pools, if the result keeps to the rules and no pool with jobs goes.
func (f *fold) changePools(c *command.ChangePools) report.Result {
	return f.once(c.RequestID, func() report.Result {
		if present := f.s.PoolsVersion(); c.Against != 0 && c.Against != present {
			return refused(facts.Conflict, "the pools have version %d by now: they were changed against version %d", present,
				c.Against)
		}
		for _, path := range c.Gone {
			if _, found := f.s.PoolNumber(path); !found {
				return refused(facts.NotFound, "there is no pool %s", path)
			}
		}
		changed := pool.Tree(f.s.Pools()).Change(c.Pools, c.Gone)
		if problems := changed.Problems(f.s.BusyPools()); len(problems) > 0 {
			return refused(facts.Invalid, "%s: %s", problems[0].Path, problems[0].Reason)
		}
		if most := f.s.Limits.Pools; uint64(len(changed)) > uint64(most) {
			return refused(facts.Exhausted, "there would be %d pools, at most %d: remove some", len(changed), most)
		}
		f.s.SetPools(changed)
		return report.Result{}
	})
}

// poolProblem refuses a job for whose pool there is no leaf.
func (f *fold) poolProblem(spec *terms.Job) report.Result {
	path := spec.Name.Pool()
	number, found := f.s.PoolNumber(path)
	switch {
	case !found:
		return refused(facts.NotFound, "there is no pool %s: create it, or name another", path)
	case !pool.Tree(f.s.Pools()).Leaf(number):
		return refused(facts.Invalid, "pool %s has pools below it, such as %s: jobs live in pools with none below", path,
			f.s.Pools()[number+1].Path)
	}
	return report.Result{}
}

// sharingProblem refuses a new version that shares its pool in another way, on which what runs was admitted.
func sharingProblem(old, spec *terms.Job) report.Result {
	for _, field := range [...]struct {
		name     string
		old, now bool
	}{
		{"preemptible", !old.NonPreemptible(), !spec.NonPreemptible()},
		{"revocable", old.Revocable, spec.Revocable}, {"controller", old.Controller, spec.Controller},
	} {
		if field.old != field.now {
			return refused(facts.Conflict, "job %s has %s: %v, which cannot change: stop it first", spec.Name, field.name,
				field.old)
		}
	}
	return report.Result{}
}
