package cluster

import (
	"slices"

	"starling/cluster/ended"
	"starling/cluster/facts"
	"starling/cluster/tree"
	"starling/cluster/want"
	"starling/cluster/workload"
	"starling/terms"
)

// Pools returns the tree of resource pools, each directly before all that is below it. It must not be changed.
func (s *State) Pools() []terms.Pool { return s.pools.Specs }

// PoolsVersion is the version of the tree of pools, from 1; every change makes the next.
func (s *State) PoolsVersion() uint32 { return s.pools.Version }

// PoolNumber returns where a pool stands in the tree, and whether it is there.
func (s *State) PoolNumber(path terms.PoolPath) (int, bool) { return s.pools.Find(path) }

// PoolOf returns where the pool of a job stands in the tree, -1 for a daemon job, which has none.
func (s *State) PoolOf(j *workload.Job) int {
	if j.Account() == 0 {
		return -1
	}
	return int(s.pools.Positions[j.Pool])
}

// Account returns what the jobs of the pool at a number hold and ask for.
func (s *State) Account(number int) workload.Account {
	return s.account(s.pools.IDs[number])
}

// SetPools replaces the tree, which must keep to the rules of package pool. Pools with jobs must stay.
func (s *State) SetPools(specs []terms.Pool) {
	next := s.pools.With(specs)
	for number, spec := range s.pools.Specs {
		if _, stays := next.Find(spec.Path); !stays {
			s.SetStarving(number, nil)
		}
	}
	s.pools = next
	s.PlacementDirty, s.PreemptionDirty = true, true
}

// BusyPools returns the pools with jobs that have not ended.
func (s *State) BusyPools() []terms.PoolPath {
	var busy []terms.PoolPath
	for number, spec := range s.Pools() {
		if s.Account(number).Jobs > 0 {
			busy = append(busy, spec.Path)
		}
	}
	return busy
}

// Capacity returns what pools divide: what is held anywhere, but by daemons, and what is free on the nodes that take
// work.
func (s *State) Capacity() terms.Amounts {
	left, daemons := s.offered, s.account(0).Held.NonSlack
	for k := range left {
		left[k] = min(max(left[k]-daemons[k], 0), terms.Unlimited)
	}
	return left
}

func (s *State) account(id tree.ID) workload.Account {
	if int(id) >= s.accounts.Len() {
		return workload.Account{}
	}
	return s.accounts.At(int(id))
}

// editAccount returns an account for changing.
func (s *State) editAccount(id tree.ID) *workload.Account {
	s.PlacementDirty, s.PreemptionDirty, s.visited = true, true, s.visited+1
	return s.ownAccount(id)
}

// ownAccount returns an account for changing what no scheduling depends on.
func (s *State) ownAccount(id tree.ID) *workload.Account {
	if int(id) >= s.accounts.Len() {
		s.accounts.Resize(s.epoch, int(id)+1)
	}
	return s.accounts.Edit(s.epoch, int(id))
}

// charge notes that so many more instances of a task hold room, or fewer.
func (s *State) charge(j *workload.Job, spec *terms.Task, times int64) {
	need := spec.Amounts()
	account := s.editAccount(j.Account())
	account.Held.Add(j.Spec, &need, times)
	facts.Assert(account.Held.NonSlack.Within(terms.Unlimited) && account.Held.Slack.Within(terms.Unlimited),
		"what a pool holds can be counted")
	s.countPreemptible(j.Pool, j.Spec, times)
	if j.Spec.Type != terms.Batch {
		account.Lasting.Add(j.Spec, &need, times)
		facts.Assert(account.Lasting.NonSlack.Within(terms.Unlimited), "what the services of a pool hold can be counted")
	}
}

// ask notes what the waiting instances of a task ask for.
func (s *State) ask(j *workload.Job, t *workload.Task, asks uint32, each terms.Amounts) {
	if asks == 0 {
		each = terms.Amounts{}
	}
	if asks == t.Asked && each == t.AskedEach {
		return
	}
	account := s.editAccount(j.Account())
	if each != t.AskedEach {
		account.Asks(j.Spec, &t.AskedEach, -int64(t.Asked))
		t.Asked = 0
	}
	account.Asks(j.Spec, &each, int64(asks)-int64(t.Asked))
	t.Asked, t.AskedEach = asks, each
}

// WantsWith returns the most that a job would ever have wanted if spec were its next version, and how many tasks it
// would have had; old is nil for a new job. No number wraps, whatever spec says: amounts end at terms.Unlimited.
func (s *State) WantsWith(old *workload.Job, spec *terms.Job) (w want.Wants, tasks int) {
	var room [4]want.Most // few jobs have more tasks
	all := room[:0]
	for i := range spec.Tasks {
		all = append(all, want.Most{}.With(&spec.Tasks[i], spec.Type, s.Limits.Nodes))
	}
	for task := 0; old != nil && task < len(old.Tasks); task++ {
		at := slices.IndexFunc(spec.Tasks, func(t terms.Task) bool { return t.Name == old.Tasks[task].Name })
		if at < 0 {
			all = append(all, old.Tasks[task].Most)
			continue
		}
		all[at] = old.Tasks[task].Most.With(&spec.Tasks[at], spec.Type, s.Limits.Nodes)
	}
	return want.Sum(all, spec.Type), len(all)
}

// Wants returns the most that all jobs that have not finished have ever wanted, each by itself.
func (s *State) Wants() want.Wants { return s.wants }

// PoolWants returns the same of the jobs that live in the pool of a job's name.
func (s *State) PoolWants(j *terms.Job) want.Wants {
	number, found := s.pools.Find(j.Name.Pool())
	if !found || j.Type == terms.Daemon {
		return s.account(0).Wants
	}
	return s.Account(number).Wants
}

// setWants counts what the newest version of a job wants.
func (s *State) setWants(j *workload.Job) {
	s.countWants(j, -1)
	j.Wanted, _ = s.WantsWith(j, j.Spec)
	for i := range j.Spec.Tasks {
		spec := &j.Spec.Tasks[i]
		s.changeTask(j.ID, j.TaskIndex(spec.Name),
			func(t *workload.Task) { t.Most = t.Most.With(spec, j.Spec.Type, s.Limits.Nodes) })
	}
	s.countWants(j, 1)
}

// countWants adds what a job wants to what its pool and the cluster do, or takes it away.
func (s *State) countWants(j *workload.Job, times int64) {
	s.wants.Add(&j.Wanted, times)
	facts.Assert(s.wants.Amounts.Within(s.Limits.ClusterAmount), "what all jobs want can be counted")
	s.editAccount(j.Account()).Wants.Add(&j.Wanted, times)
}

// countSpecs charges the specs of a job to its pool, or takes them away; one that has ended is put among those.
func (s *State) countSpecs(j *workload.Job, times int64) {
	switch {
	case j.Finished == 0:
		s.ownAccount(j.Pool).Specs.Add(j.Specs(), times)
	case times < 0:
		s.finished.Delete(ended.Of(j))
	default:
		s.finished.Add(ended.Of(j))
	}
}

// LowestPriority returns the lowest priority of what runs in a pool and is preemptible, revocable or not; ok is false
// if there is none.
func (s *State) LowestPriority(number int, revocable bool) (priority uint32, ok bool) {
	return s.preemptible.LowestPriority(s.pools.IDs[number], revocable)
}
