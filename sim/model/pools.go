package model

import (
	"slices"
	"strings"

	"starling/cluster/want"
	"starling/cluster/workload"
	"starling/command"
	"starling/sim/model/amounts"
	"starling/sim/model/keeping"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/pool"
)

// changePools changes the tree of resource pools, all at once or not at all.
func (m *Model) changePools(c *command.ChangePools) bool {
	if c.Against != 0 && c.Against != m.poolsVersion {
		return false
	}
	for _, path := range c.Gone {
		if m.poolNumber(path) < 0 {
			return false
		}
	}
	changed := pool.Tree(m.pools).Change(c.Pools, c.Gone)
	var busy pool.Busy
	for _, p := range m.pools {
		if m.account(p.Path).Jobs > 0 {
			busy = append(busy, p.Path)
		}
	}
	if len(changed.Problems(busy)) > 0 || len(changed) > int(m.limits.Pools) {
		return false
	}
	m.pools = changed
	m.poolsVersion++
	return true
}

// poolNumber returns where a pool stands in the tree, -1 if it is not there.
func (m *Model) poolNumber(path terms.PoolPath) int {
	return slices.IndexFunc(m.pools, func(p terms.Pool) bool { return p.Path == path })
}

// isLeaf tells whether jobs can live in a pool: it is there, and none is below it.
func (m *Model) isLeaf(path terms.PoolPath) bool {
	return m.poolNumber(path) >= 0 && !slices.ContainsFunc(m.pools, func(p terms.Pool) bool {
		return strings.HasPrefix(string(p.Path), string(path)+"/")
	})
}

// account returns what the jobs of a pool hold and ask for. Daemons belong to their machines.
func (m *Model) account(path terms.PoolPath) (a workload.Account) {
	for _, j := range m.Jobs {
		spec := j.newest()
		if spec.Name.Pool() != path {
			continue
		}
		if j.finished == 0 {
			a.Jobs++
			a.Specs.Add(keeping.Specs(j.versions), 1)
		}
		if spec.Type == terms.Daemon {
			continue
		}
		if wants := j.wants(); j.finished == 0 {
			a.Wants.Add(&wants, 1)
		}
		j.each(func(s *seat) {
			if s.Phase.Holds() {
				amounts.Charge(&a.Held, spec, amounts.Of(s.spec()), 1)
			}
			if s.Phase.Holds() && spec.Type != terms.Batch {
				amounts.Charge(&a.Lasting, spec, amounts.Of(s.spec()), 1)
			}
		})
		for _, t := range j.tasks {
			asks := t.asks()
			if fast := m.fold.Job(j.ID); fast != nil && fast.Tasks[t.number].Unsuited && !t.queued(true) {
				asks = 0 // no node could run it: that is so is a promise of its own
			}
			if a.Asking += asks; spec.Revocable {
				a.AskingRevocable += asks
			}
			if asks > 0 {
				amounts.Charge(&a.Asked, spec, amounts.Of(t.spec(0)), asks)
			}
		}
	}
	return a
}

// idle tells whether nothing of a task asks for room for now, whatever it lacks.
func (t *task) idle() bool {
	return t.job.suspended || t.restarting || len(t.job.awaits) > 0 || t.held()
}

// asks returns how many instances of a task ask for room: those that wait and may run beside those that do.
func (t *task) asks() uint32 {
	spec, waiting, live := t.spec(0), uint32(0), uint32(0)
	if spec == nil || t.idle() {
		return 0
	}
	t.each(func(s *seat) {
		switch {
		case s.waits():
			waiting++
		case s.Phase.Holds():
			live++
		}
	})
	if spec.MaxRunning > 0 {
		waiting = min(waiting, spec.MaxRunning-min(spec.MaxRunning, live))
	}
	return waiting
}

// capacity returns what pools divide: what is held anywhere, but by daemons, and what is free on nodes that take work.
func (m *Model) capacity() (sum terms.Amounts) {
	for _, n := range m.Nodes {
		held, daemons, offered := terms.Amounts{}, terms.Amounts{}, terms.Amounts{}
		for _, s := range m.on(n) {
			for k, amount := range amounts.Of(s.spec()) {
				held[k] += amount
				if s.job().newest().Type == terms.Daemon {
					daemons[k] += amount
				}
			}
		}
		if n.open() {
			offered = n.offers()
		}
		for k := range sum {
			sum[k] += max(held[k], offered[k]) - daemons[k]
		}
	}
	for k := range sum {
		sum[k] = max(sum[k], 0)
	}
	return sum
}

// offers returns what the node has of what pools divide.
func (n *Node) offers() terms.Amounts { return amounts.Offered(n.offer) }

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
	for _, other := range m.Jobs {
		if other.finished != 0 || other == j {
			continue
		}
		kind, wants := other.newest().Type, mosts(other, other.newest())
		open++
		total.Add(wants, kind, l.Nodes)
		if amounts.Charged(other.newest()) == amounts.Charged(spec) {
			pool.Add(wants, kind, l.Nodes)
		}
	}
	home := spec.Name.Pool()
	kept, _ := m.keptOf(spec.Name)
	crowded := reading.Crowded{Rules: m.rules, Spec: spec, Old: j.had(), New: j == nil,
		Jobs: int(m.account(home).Jobs), JobsLeft: int(l.Jobs) - open}
	return crowded.Is(own.Instances, pool.Instances, uint64(l.Instances)-total.Instances) ||
		m.volumes.Exceeds(kept, spec, m.account(home).Specs, m.pools[m.poolNumber(home)].SpecBytesMost()) ||
		len(all) > int(l.Tasks) || reading.AsksTooMuch(l, spec) ||
		own.Instances > uint64(l.JobInstances) || total.Instances > uint64(l.Instances) ||
		own.Exceeds(l.JobAmount) || pool.Exceeds(l.PoolAmount) || total.Exceeds(l.ClusterAmount)
}

// had is how many instances a job has wanted at most; there may be none yet.
func (j *Job) had() uint64 {
	if j == nil {
		return 0
	}
	return j.wants().Instances
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
