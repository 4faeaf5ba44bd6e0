package model

import (
	"slices"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
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
	return t.full() && len(t.slots) == int(t.desired) &&
		!slices.ContainsFunc(t.slots, func(s *slot) bool { return s.main().Phase != facts.Succeeded })
}

// full tells whether as many instances are wanted as the newest version has.
func (t *task) full() bool { return t.spec(0) != nil && t.desired == t.wants() }

// wants returns how many instances the newest version wants; of a sealed task no more than had begun.
func (t *task) wants() uint32 {
	if t.sealed.Entry > 0 {
		return min(t.spec(0).Instances, t.sealed.Count)
	}
	return t.spec(0).Instances
}

// seal lets no more instances of a task begin than have.
func (m *Model) seal(j *Job, c *command.SealTask) bool {
	at := slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == c.Slot.Task })
	if at < 0 || j.newest().Type != terms.Batch || int(c.Slot.Index) >= len(j.tasks[at].slots) {
		return false
	}
	t := j.tasks[at]
	main := t.slots[c.Slot.Index].main()
	switch {
	case t.sealed.Entry > 0 && t.sealed.Index == c.Slot.Index && t.sealed.Order == c.Order:
		return true
	case main.Order != c.Order || !main.Phase.Holds() || t.sealed.Entry > 0:
		return false
	}
	count := min(t.used(), t.desired)
	t.sealed = facts.Seal{Index: c.Slot.Index, Order: c.Order, Entry: m.index, Count: count}
	m.want(t, count)
	return true
}

// held tells whether a task waits for others.
func (t *task) held() bool {
	return slices.ContainsFunc(t.after(), func(before *task) bool { return !before.complete() })
}

// vain tells whether a task comes after one that is over and not complete, or after another one in vain.
func (t *task) vain() bool {
	return slices.ContainsFunc(t.after(),
		func(before *task) bool { return before.full() && !before.busy() && !before.complete() || before.vain() })
}

// abandon wants nothing of tasks in vain.
func (m *Model) abandon(j *Job) {
	if j.finished != 0 || j.stop {
		return
	}
	for _, t := range j.tasks {
		if t.desired > 0 && t.vain() && !slices.ContainsFunc(t.slots, (*slot).holds) {
			m.want(t, 0)
		}
	}
}

// needed tells whether something that is not complete comes after a task.
func (t *task) needed() bool {
	return slices.ContainsFunc(t.job.tasks, func(other *task) bool {
		return slices.Contains(other.after(), t) && !other.vain() && !other.complete() && (other.busy() || !other.full())
	})
}

// loseOutputs lets what has succeeded run again if its output is needed and nobody lives on its node, until nothing is.
func (m *Model) loseOutputs(j *Job) {
	for again := j.finished == 0 && !j.stop; again; {
		again = false
		for _, t := range j.tasks {
			for _, slot := range t.slots {
				s := slot.main()
				if t.needed() && s.Phase == facts.Succeeded && m.Nodes[s.Node].Peer == "" {
					row := s.Slot
					row.Ended, again = facts.NodeLost, true
					m.wait(s, row, facts.AnyNode)
				}
			}
		}
	}
}

// outputLost lets what has succeeded run again if its output is needed, and with it what it needs itself.
func (m *Model) outputLost(s *seat) {
	j := s.job()
	if s != s.slot.main() || s.Phase != facts.Succeeded || j.finished != 0 || j.stop || !s.slot.task.needed() {
		return
	}
	row := s.Slot
	row.Ended, j.touched = facts.OutputLost, true
	m.wait(s, row, facts.AnyNode)
	m.loseOutputs(j)
}

// succeeded tells whether a job that has ended was neither stopped nor has failed.
func (j *Job) succeeded() bool {
	if j.state.Outcome != facts.NoOutcome {
		return j.state.Outcome == facts.Completed
	}
	failed := false
	j.each(func(s *seat) { failed = failed || s.Phase == facts.Failed })
	return !j.stop && (!failed || j.enough())
}

// followJobs tells those that wait for jobs which have ended with this entry.
func (m *Model) followJobs() {
	for i := 0; i < len(m.closed); i++ {
		name := m.closed[i].newest().Name
		for _, j := range slices.Clone(m.Jobs) {
			switch {
			case j.finished != 0 || !slices.Contains(j.awaits, name):
			case !m.closed[i].succeeded():
				j.state.Last = facts.PolicyAction{Entry: m.index, At: m.time, Before: name}
				m.kill(j)
				m.tidy()
			default:
				j.awaits = slices.DeleteFunc(j.awaits, func(one terms.JobName) bool { return one == name })
				j.touched = true
				if j.update.State.Rolls() {
					j.update.ProgressAt = m.time
				}
			}
		}
	}
}
