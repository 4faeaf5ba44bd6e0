package sim

import (
	"reflect"

	"starling/cluster"
	"starling/command"
)

type modelJob struct {
	id cluster.JobID
	// versions are all that ever were; version n stands at n-1.
	versions                []*cluster.JobSpec
	stop                    bool
	submitted, changed      cluster.Index
	finished                cluster.Index
	submittedAt, finishedAt cluster.Time
	tasks                   []*modelTask
}

type modelTask struct {
	job     *modelJob
	name    cluster.TaskName
	desired uint32
	slots   []modelSlot
	failure cluster.Failure
	// patient tells that it waits with a soft rule, patientSince since when.
	patient      bool
	patientSince cluster.Time
}

// modelSlot is a slot with what its allocation was given.
type modelSlot struct {
	cluster.Slot
	index   uint32
	ports   []cluster.PortUse
	devices []cluster.DeviceUse
}

func holds(p cluster.Phase) bool {
	return p == cluster.Assigned || p == cluster.Running || p == cluster.Delayed || p == cluster.Stopping
}

func (j *modelJob) newest() *cluster.JobSpec { return j.versions[len(j.versions)-1] }

// spec returns what the task is in a version of the job, nil if that has no such task.
func (t *modelTask) spec(version uint32) *cluster.TaskSpec {
	tasks := t.job.versions[version-1].Tasks
	for i := range tasks {
		if tasks[i].Name == t.name {
			return &tasks[i]
		}
	}
	return nil
}

func (t *modelTask) newest() *cluster.TaskSpec { return t.spec(uint32(len(t.job.versions))) }

func (t *modelTask) waits(s *modelSlot) bool {
	return s.Phase == cluster.Waiting && s.index < t.desired
}

func (m *model) jobOf(name cluster.JobName) *modelJob {
	for _, j := range m.jobs {
		if j.newest().Name == name {
			return j
		}
	}
	return nil
}

func (m *model) submit(spec *cluster.JobSpec) bool {
	if len(spec.Problems()) > 0 {
		return false
	}
	j := m.jobOf(spec.Name)
	if j != nil && j.finished != 0 {
		m.forget(j)
		j = nil
	}
	switch {
	case j == nil:
		m.lastJob++
		j = &modelJob{id: m.lastJob, submitted: m.index, submittedAt: m.time}
		m.jobs = append(m.jobs, j)
	case j.stop || j.newest().Type != spec.Type:
		return false
	case reflect.DeepEqual(j.newest(), spec):
		return true
	}
	j.changed = m.index
	j.versions = append(j.versions, spec)
	m.wanted(j)
	m.replace(j)
	return true
}

// wanted gives every task as many slots as the newest version wants. What was not wanted and is again begins anew, if
// nothing has come of it.
func (m *model) wanted(j *modelJob) {
	for i := range j.newest().Tasks {
		name := j.newest().Tasks[i].Name
		known := false
		for _, t := range j.tasks {
			known = known || t.name == name
		}
		if !known {
			j.tasks = append(j.tasks, &modelTask{job: j, name: name})
		}
	}
	for _, t := range j.tasks {
		before := t.desired
		t.desired = 0
		if spec := t.newest(); spec != nil {
			t.desired = spec.Instances
		}
		for len(t.slots) < int(t.desired) {
			t.slots = append(t.slots, modelSlot{index: uint32(len(t.slots))})
		}
		for i := before; i < t.desired; i++ {
			if s := &t.slots[i]; s.Phase == cluster.Stopped || s.Phase == cluster.Waiting {
				s.Slot = cluster.Slot{Order: s.Order, Node: s.Node}
			}
		}
		t.patient = t.patient && t.waiting()
	}
}

// replace tells what is not wanted any more, or runs another program than the newest, to stop. What had failed gets
// another try.
func (m *model) replace(j *modelJob) {
	for _, t := range j.tasks {
		for i := range t.slots {
			s := &t.slots[i]
			if s.Phase == cluster.Failed && s.index < t.desired {
				s.Phase, s.Failures, s.Since = cluster.Waiting, 0, m.time
			}
			if holds(s.Phase) && (s.index >= t.desired || !sameProgram(t.spec(s.Version), t.newest())) {
				m.end(t, s)
			}
		}
	}
}

func sameProgram(a, b *cluster.TaskSpec) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := *a, *b
	x.Instances, y.Instances = 0, 0
	return reflect.DeepEqual(x, y)
}

// end tells a slot that takes room to stop; one that waits for its restart has nothing to stop.
func (m *model) end(t *modelTask, s *modelSlot) {
	switch s.Phase {
	case cluster.Assigned, cluster.Running:
		s.Phase, s.Since = cluster.Stopping, m.time
	case cluster.Delayed:
		m.vacate(t, s)
	}
}

// vacate takes the room from a slot: it waits for other room if it is still wanted.
func (m *model) vacate(t *modelTask, s *modelSlot) {
	s.Phase, s.Since, s.Deadline = cluster.Waiting, m.time, 0
	s.ports, s.devices = nil, nil
	if t.job.stop || s.index >= t.desired {
		s.Phase = cluster.Stopped
	}
}

func (m *model) kill(name cluster.JobName) bool {
	j := m.jobOf(name)
	if j == nil || j.finished != 0 {
		return false
	}
	if j.stop {
		return true
	}
	j.stop, j.changed = true, m.index
	for _, t := range j.tasks {
		for len(t.slots) > 0 && t.slots[len(t.slots)-1].Order == 0 {
			t.slots = t.slots[:len(t.slots)-1]
		}
		t.desired = min(t.desired, uint32(len(t.slots)))
		for i := range t.slots {
			if s := &t.slots[i]; s.Phase == cluster.Waiting {
				s.Phase, s.Since = cluster.Stopped, m.time
			}
			m.end(t, &t.slots[i])
		}
	}
	return true
}

func (m *model) reports(writer cluster.PeerID, all []command.Report) bool {
	node := m.nodeOf(writer.Node()).number
	for i := range all {
		news := &all[i]
		t, s := m.slot(news.Slot)
		if s == nil || s.Order != news.Order || s.Node != node {
			continue
		}
		switch {
		case s.Phase != cluster.Assigned && s.Phase != cluster.Running && s.Phase != cluster.Stopping:
		case news.Ended != cluster.NotEnded:
			m.over(t, s, news)
			m.tidy()
		case s.Phase == cluster.Assigned:
			s.Phase, s.Since = cluster.Running, m.time
		}
	}
	return true
}

func (m *model) slot(r cluster.SlotRef) (*modelTask, *modelSlot) {
	for _, j := range m.jobs {
		if j.id == r.Job && int(r.Task) < len(j.tasks) && int(r.Index) < len(j.tasks[r.Task].slots) {
			return j.tasks[r.Task], &j.tasks[r.Task].slots[r.Index]
		}
	}
	return nil, nil
}

// over decides what follows the end of an allocation.
func (m *model) over(t *modelTask, s *modelSlot, news *command.Report) {
	lasted := cluster.Time(-1)
	if s.Phase == cluster.Running {
		lasted = m.time - s.Since
	}
	stopping := s.Phase == cluster.Stopping
	s.Ended, s.ExitCode, s.Since = news.Ended, news.ExitCode, m.time
	if stopping {
		m.vacate(t, s)
		return
	}
	if t.job.newest().Type == cluster.Batch && news.Ended == cluster.ByItself && news.ExitCode == 0 {
		s.Phase, s.Failures = cluster.Succeeded, 0
		s.ports, s.devices = nil, nil
		return
	}
	t.failure = cluster.Failure{
		Index: s.index, Order: s.Order, At: m.time, Ended: news.Ended, ExitCode: news.ExitCode, Detail: news.Detail,
	}
	rule := t.spec(s.Version).Restart
	if lasted >= cluster.Time(rule.ResetMillis) {
		s.Failures = 0
	}
	s.Failures++
	if rule.AttemptsMax != cluster.RestartsUnlimited && s.Failures > rule.AttemptsMax {
		s.Phase = cluster.Failed
		s.ports, s.devices = nil, nil
		return
	}
	wait := cluster.Time(rule.DelayMillis)
	for i := uint32(1); i < s.Failures && wait > 0 && wait < cluster.Time(rule.DelayMaxMillis); i++ {
		wait *= 2
	}
	s.Phase, s.Deadline = cluster.Delayed, m.time+min(wait, cluster.Time(rule.DelayMaxMillis))
}
