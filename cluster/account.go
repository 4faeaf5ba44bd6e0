package cluster

import (
	"starling/cluster/tree"
	"starling/terms"
)

// Account is what the jobs of a pool hold and ask for.
type Account struct {
	// Held is held by instances, Lasting the part of it that services hold, which do not end by themselves.
	Held, Lasting terms.Work
	// Asked is wanted by instances that wait. Of a task that may not run more at a time only so many ask.
	Asked terms.Work
	// Asking counts the instances that ask, AskingRevocable the revocable ones among them.
	Asking, AskingRevocable uint32
	// Wants is the most that its jobs that have not ended have ever wanted, each by itself.
	Wants Wants
	// Jobs are those that have not ended.
	Jobs uint32
}

// Pools returns the tree of resource pools, each directly before all that is below it. It must not be changed.
func (s *State) Pools() []terms.Pool { return s.pools.Specs }

// PoolsVersion is the version of the tree of pools, from 1; every change makes the next.
func (s *State) PoolsVersion() uint32 { return s.pools.Version }

// PoolNumber returns where a pool stands in the tree, and whether it is there.
func (s *State) PoolNumber(path terms.PoolPath) (int, bool) { return s.pools.Find(path) }

// PoolOf returns where the pool of a job stands in the tree, -1 for a daemon job, which has none.
func (s *State) PoolOf(j *Job) int {
	if j.account() == 0 {
		return -1
	}
	return int(s.pools.Positions[j.Pool])
}

// Account returns what the jobs of the pool at a number hold and ask for.
func (s *State) Account(number int) Account {
	id := int(s.pools.IDs[number])
	if id >= s.accounts.Len() {
		return Account{}
	}
	return s.accounts.At(id)
}

// SetPools replaces the tree, which must keep to the rules of package pool. Pools with jobs must stay.
func (s *State) SetPools(specs []terms.Pool) {
	next := s.pools.With(specs)
	for number, spec := range s.pools.Specs {
		if _, stays := next.Find(spec.Path); !stays {
			s.SetHunger(number, nil)
		}
	}
	s.pools = next
	s.Stirred, s.Moved = true, true
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

// Capacity returns what pools divide: what is held anywhere, but by daemons, and what is free on the nodes that take work.
func (s *State) Capacity() terms.Amounts {
	left, daemons := s.offered, s.account(0).Held.NonSlack
	for k := range left {
		left[k] = min(max(left[k]-daemons[k], 0), terms.Unlimited)
	}
	return left
}

func (s *State) account(id tree.ID) Account {
	if int(id) >= s.accounts.Len() {
		return Account{}
	}
	return s.accounts.At(int(id))
}

// editAccount returns an account for changing.
func (s *State) editAccount(id tree.ID) *Account {
	s.Stirred, s.Moved, s.visited = true, true, s.visited+1
	if int(id) >= s.accounts.Len() {
		s.accounts.Resize(s.edition, int(id)+1)
	}
	return s.accounts.Edit(s.edition, int(id))
}

// asks notes that so many more instances ask for room, or fewer.
func (a *Account) asks(j *terms.Job, each *terms.Amounts, count int64) {
	a.Asked.Add(j, each, count)
	assert(int64(a.Asking)+count >= 0, "no fewer than none ask")
	a.Asking = uint32(int64(a.Asking) + count)
	if j.Revocable {
		a.AskingRevocable = uint32(int64(a.AskingRevocable) + count)
	}
}

// charge notes that so many more instances of a task hold room, or fewer.
func (s *State) charge(j *Job, spec *terms.Task, times int64) {
	need := spec.Amounts()
	account := s.editAccount(j.account())
	account.Held.Add(j.Spec, &need, times)
	assert(account.Held.NonSlack.Within(terms.Unlimited) && account.Held.Slack.Within(terms.Unlimited), "what a pool holds can be counted")
	s.countPriority(j, times)
	if j.Spec.Type != terms.Batch {
		account.Lasting.Add(j.Spec, &need, times)
		assert(account.Lasting.NonSlack.Within(terms.Unlimited), "what the services of a pool hold can be counted")
	}
}

// ask notes what the waiting instances of a task ask for.
func (s *State) ask(j *Job, t *Task, asks uint32, each terms.Amounts) {
	if asks == 0 {
		each = terms.Amounts{}
	}
	if asks == t.asked && each == t.askedEach {
		return
	}
	account := s.editAccount(j.account())
	if each != t.askedEach {
		account.asks(j.Spec, &t.askedEach, -int64(t.asked))
		t.asked = 0
	}
	account.asks(j.Spec, &each, int64(asks)-int64(t.asked))
	t.asked, t.askedEach = asks, each
}

// asks returns how many instances of the task ask for room: those that wait and may run beside those that do.
func (t *Task) asks(spec *terms.Task) uint32 {
	if spec == nil {
		return 0
	}
	waits := t.Waits() + uint32(t.SpecialWaits())
	if spec.MaxRunning > 0 {
		waits = min(waits, spec.MaxRunning-min(spec.MaxRunning, t.Live()))
	}
	return waits
}

// Asks returns how many instances of the task are to be given room: those that wait and may run beside those that do, as far
// as the task has virtual peers for them if such run it.
func (t *Task) Asks() uint32 {
	if share, ok := t.Share(); ok {
		return min(t.asked, share-min(share, t.Live()))
	}
	return t.asked
}
