package cluster

import (
	"slices"

	"starling/cluster/want"
	"starling/terms"
)

// Wants is the most that a job, the jobs of a pool or all jobs have ever wanted at a time.
type Wants = want.Wants

// WantsWith returns the most that a job would ever have wanted if spec were its next version, and how many tasks it would
// have had; old is nil for a new job. No number wraps, whatever spec says: amounts end at terms.Unlimited.
func (s *State) WantsWith(old *Job, spec *terms.Job) (w Wants, tasks int) {
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

// Most returns the most that the job has ever wanted at a time.
func (j *Job) Most() Wants { return j.wants }

// Wants returns the most that all jobs that have not finished have ever wanted, each by itself.
func (s *State) Wants() Wants { return s.wants }

// PoolWants returns the same of the jobs that live in the pool of a job's name.
func (s *State) PoolWants(j *terms.Job) Wants {
	number, found := s.pools.Find(j.Name.Pool())
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
		s.changeTask(j.ID, j.TaskIndex(spec.Name), func(t *Task) { t.Most = t.Most.With(spec, j.Spec.Type, s.Limits.Nodes) })
	}
	s.countWants(j, 1)
}

// countWants adds what a job wants to what its pool and the cluster do, or takes it away.
func (s *State) countWants(j *Job, times int64) {
	s.wants.Add(&j.wants, times)
	assert(s.wants.Amounts.Within(s.Limits.ClusterAmount), "what all jobs want can be counted")
	s.editAccount(j.account()).Wants.Add(&j.wants, times)
}
