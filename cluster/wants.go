package cluster

import (
	"slices"

	"starling/terms"
)

// Wants is the most that a job, the jobs of a pool or all jobs have ever wanted at a time. What they hold and ask for is at
// most three times as much, since a slot may hold room in three seats; so bounds on it keep every sum within its range.
type Wants struct {
	Instances uint64
	Amounts   terms.Amounts
}

// Add adds what other wants, so many times: 1 or -1.
func (w *Wants) Add(other *Wants, times int64) {
	w.Instances += other.Instances * uint64(times)
	for k := range w.Amounts {
		w.Amounts[k] += other.Amounts[k] * times
	}
}

// most is the most that any version of a task has wanted: instances, and what each takes.
type most struct {
	instances uint32
	each      terms.Amounts
}

// with returns the most of m and what a version of the task wants.
func (m most) with(spec *terms.Task, kind terms.JobType, l *terms.Limits) most {
	m.instances = max(m.instances, spec.Instances)
	if kind == terms.Daemon {
		m.instances = l.Nodes
	}
	for k, amount := range spec.Amounts() {
		m.each[k] = max(m.each[k], amount)
	}
	return m
}

func (m *most) hash() uint64 {
	h := uint64(m.instances)
	for _, amount := range m.each {
		h = mix(h, uint64(amount))
	}
	return h
}

// WantsWith returns the most that a job would ever have wanted if spec were its next version, and how many tasks it would
// have had; old is nil for a new job. No number wraps, whatever spec says: amounts end at terms.Unlimited.
func (s *State) WantsWith(old *Job, spec *terms.Job) (w Wants, tasks int) {
	var room [4]most // few jobs have more tasks
	all := room[:0]
	for i := range spec.Tasks {
		all = append(all, most{}.with(&spec.Tasks[i], spec.Type, &s.Limits))
	}
	for task := 0; old != nil && task < len(old.Tasks); task++ {
		at := slices.IndexFunc(spec.Tasks, func(t terms.Task) bool { return t.Name == old.Tasks[task].Name })
		if at < 0 {
			all = append(all, old.Tasks[task].most)
			continue
		}
		all[at] = old.Tasks[task].most.with(&spec.Tasks[at], spec.Type, &s.Limits)
	}
	return sumOf(all, spec.Type), len(all)
}

func sumOf(all []most, kind terms.JobType) (w Wants) {
	for i := range all {
		count := uint64(all[i].instances)
		if w.Instances += count; kind == terms.Daemon {
			w.Instances -= count - 1 // its instances are not more than there are nodes
		}
		for k, amount := range all[i].each {
			w.Amounts[k] = terms.Sum(w.Amounts[k], terms.Times(amount, count))
		}
	}
	return w
}

// Most returns the most that the job has ever wanted at a time.
func (j *Job) Most() Wants { return j.wants }

// Wants returns the most that all jobs that have not finished have ever wanted, each by itself.
func (s *State) Wants() Wants { return s.wants }

// PoolWants returns the same of the jobs that live in the pool of a job's name.
func (s *State) PoolWants(j *terms.Job) Wants {
	number, found := s.pools.find(j.Name.Pool())
	if !found || j.Type == terms.Daemon {
		return s.account(0).Wants
	}
	return s.Account(number).Wants
}

// setWants counts what the newest version of a job wants.
func (s *State) setWants(j *Job) {
	s.countWants(j, -1)
	j.wants, _ = s.WantsWith(j, j.Spec)
	for i := range j.Spec.Tasks {
		spec := &j.Spec.Tasks[i]
		s.changeTask(j.ID, j.TaskIndex(spec.Name), func(t *Task) { t.most = t.most.with(spec, j.Spec.Type, &s.Limits) })
	}
	s.countWants(j, 1)
}

// countWants adds what a job wants to what its pool and the cluster do, or takes it away.
func (s *State) countWants(j *Job, times int64) {
	s.wants.Add(&j.wants, times)
	assert(s.wants.Amounts.Within(s.Limits.ClusterAmount), "what all jobs want can be counted")
	s.editAccount(j.account()).Wants.Add(&j.wants, times)
}
