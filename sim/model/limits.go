package model

import (
	"math/big"
	"slices"

	"starling/cluster/want"
	"starling/terms"
)

// most is the most that any version of a task has wanted.
type most struct {
	instances uint32
	each      terms.Amounts
}

func (m most) or(spec *terms.Task) most {
	m.instances = max(m.instances, spec.Instances)
	for k, amount := range amountsOf(spec) {
		m.each[k] = max(m.each[k], amount)
	}
	return m
}

// mosts returns the most of every task that a job would ever have had with a version; j may be nil.
func mosts(j *Job, spec *terms.Job) []most {
	var all []most
	if j != nil {
		for _, t := range j.tasks {
			all = append(all, t.most)
		}
	}
	for i := range spec.Tasks {
		at := -1
		if j != nil {
			at = slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == spec.Tasks[i].Name })
		}
		if at < 0 {
			at, all = len(all), append(all, most{})
		}
		all[at] = all[at].or(&spec.Tasks[i])
	}
	return all
}

// sum is what some jobs have wanted at most, exactly.
type sum struct {
	instances uint64
	amounts   [terms.AmountCount]big.Int
}

func (u *sum) add(all []most, kind terms.JobType, nodes uint32) {
	for _, one := range all {
		count := one.instances
		if u.instances += uint64(count); kind == terms.Daemon {
			u.instances += 1 - uint64(count)
			count = nodes
		}
		for k, amount := range one.each {
			u.amounts[k].Add(&u.amounts[k], new(big.Int).Mul(big.NewInt(amount), big.NewInt(int64(count))))
		}
	}
}

// exceeds tells whether any amount is above a limit.
func (u *sum) exceeds(limit int64) bool {
	return slices.ContainsFunc(u.amounts[:], func(amount big.Int) bool { return amount.Cmp(big.NewInt(limit)) > 0 })
}

// beyond tells whether a version would bring its job, its pool or the cluster beyond a limit; j is nil for a new job.
func (m *Model) beyond(j *Job, spec *terms.Job) bool {
	l, all := &m.limits, mosts(j, spec)
	own, pool, total, open := &sum{}, &sum{}, &sum{}, 0
	for _, u := range []*sum{own, pool, total} {
		u.add(all, spec.Type, l.Nodes)
	}
	account := func(spec *terms.Job) terms.PoolPath {
		if spec.Type == terms.Daemon {
			return "daemons"
		}
		return spec.Name.Pool()
	}
	for _, other := range m.Jobs {
		if other.finished != 0 || other == j {
			continue
		}
		kind, wants := other.newest().Type, mosts(other, other.newest())
		open++
		total.add(wants, kind, l.Nodes)
		if account(other.newest()) == account(spec) {
			pool.add(wants, kind, l.Nodes)
		}
	}
	many := j == nil && open >= int(l.Jobs) || len(all) > int(l.Tasks) || asksTooMuch(l, spec)
	return many || own.instances > uint64(l.JobInstances) || total.instances > uint64(l.Instances) ||
		own.exceeds(l.JobAmount) || pool.exceeds(l.PoolAmount) || total.exceeds(l.ClusterAmount)
}

// asksTooMuch tells whether a job has a gang that is too large, or a task asks for more attempts than are remembered.
func asksTooMuch(l *terms.Limits, spec *terms.Job) bool {
	return spec.GangSize() > uint64(l.Gang) || slices.ContainsFunc(spec.Tasks, func(t terms.Task) bool {
		return t.Reschedule.AttemptsMax > l.Attempts && t.Reschedule.AttemptsMax != terms.RestartsUnlimited
	})
}

// offersTooMuch tells whether all nodes would offer more than the limit if one offered that.
func (m *Model) offersTooMuch(node *Node, offer *terms.Offer) bool {
	total := &sum{}
	for _, n := range m.Nodes {
		one := n.offer
		if n == node {
			one = offer
		}
		if one != nil {
			total.add([]most{{1, one.Amounts()}}, terms.Batch, 0)
		}
	}
	return total.exceeds(m.limits.ClusterAmount)
}

// wants returns what the jobs of a pool that have not finished have wanted at most, as the account has it.
func (j *Job) wants() want.Wants {
	u, w := &sum{}, want.Wants{}
	u.add(mosts(j, j.newest()), j.newest().Type, 0)
	w.Instances = u.instances
	for k := range u.amounts {
		w.Amounts[k] = u.amounts[k].Int64()
	}
	return w
}
