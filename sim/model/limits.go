package model

import (
	"slices"

	"starling/cluster/want"
	"starling/sim/model/amounts"
	"starling/sim/model/reading"
	"starling/terms"
)

// mosts returns the most of every task that a job would ever have had with a version; j may be nil.
func mosts(j *Job, spec *terms.Job) []amounts.Most {
	var all []amounts.Most
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
			at, all = len(all), append(all, amounts.Most{})
		}
		all[at] = all[at].Or(&spec.Tasks[i])
	}
	return all
}

// beyond tells whether a version would bring its job, its pool or the cluster beyond a limit; j is nil for a new job.
func (m *Model) beyond(j *Job, spec *terms.Job) bool {
	l, all := &m.limits, mosts(j, spec)
	own, pool, total, open := &amounts.Sum{}, &amounts.Sum{}, &amounts.Sum{}, 0
	for _, u := range []*amounts.Sum{own, pool, total} {
		u.Add(all, spec.Type, l.Nodes)
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
		total.Add(wants, kind, l.Nodes)
		if account(other.newest()) == account(spec) {
			pool.Add(wants, kind, l.Nodes)
		}
	}
	many := j == nil && open >= int(l.Jobs) || len(all) > int(l.Tasks) || reading.AsksTooMuch(l, spec)
	return many || own.Instances > uint64(l.JobInstances) || total.Instances > uint64(l.Instances) ||
		own.Exceeds(l.JobAmount) || pool.Exceeds(l.PoolAmount) || total.Exceeds(l.ClusterAmount)
}

// offersTooMuch tells whether all nodes would offer more than the limit if one offered that.
func (m *Model) offersTooMuch(node *Node, offer *terms.Offer) bool {
	total := &amounts.Sum{}
	for _, n := range m.Nodes {
		one := n.offer
		if n == node {
			one = offer
		}
		if one != nil {
			total.Add([]amounts.Most{{Instances: 1, Each: one.Amounts()}}, terms.Batch, 0)
		}
	}
	return total.Exceeds(m.limits.ClusterAmount)
}

// wants returns what the jobs of a pool that have not finished have wanted at most, as the account has it.
func (j *Job) wants() want.Wants {
	u, w := &amounts.Sum{}, want.Wants{}
	u.Add(mosts(j, j.newest()), j.newest().Type, 0)
	w.Instances = u.Instances
	for k := range u.Amounts {
		w.Amounts[k] = u.Amounts[k].Int64()
	}
	return w
}
