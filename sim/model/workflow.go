package model

import (
	"slices"

	"starling/cluster"
)

// after returns the tasks that a task comes after.
func (t *task) after() (all []*task) {
	if spec := t.spec(0); spec != nil {
		for _, name := range spec.After {
			all = append(all, t.job.tasks[slices.IndexFunc(t.job.tasks, func(other *task) bool { return other.name == name })])
		}
	}
	return all
}

// complete tells whether there are as many instances as there are to be, and all have succeeded.
func (t *task) complete() bool {
	return t.full() && len(t.slots) == int(t.desired) && !slices.ContainsFunc(t.slots, func(s *slot) bool { return s.main().Phase != cluster.Succeeded })
}

// full tells whether as many instances are wanted as the newest version has.
func (t *task) full() bool { return t.spec(0) != nil && t.desired == t.spec(0).Instances }

// held tells whether a task waits for others.
func (t *task) held() bool {
	return slices.ContainsFunc(t.after(), func(before *task) bool { return !before.complete() })
}

// vain tells whether a task comes after one that is over and not complete, or after another one in vain.
func (t *task) vain() bool {
	return slices.ContainsFunc(t.after(), func(before *task) bool { return before.full() && !before.busy() && !before.complete() || before.vain() })
}

// abandon wants nothing of tasks in vain.
func (m *Model) abandon(j *Job) {
	if j.finished != 0 || j.stop {
		return
	}
	for _, t := range j.tasks {
		alive := false
		t.each(func(s *seat) { alive = alive || s.Phase.Holds() })
		if t.desired > 0 && !alive && t.vain() {
			m.want(t, 0)
		}
	}
}
