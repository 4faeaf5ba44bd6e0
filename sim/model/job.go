package model

import (
	"cmp"
	"reflect"
	"slices"

	"starling/cluster/facts"
	"starling/cluster/retries"
	"starling/command"
	"starling/sim/model/amounts"
	"starling/sim/model/keeping"
	"starling/sim/model/reading"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/validate"
)

// Job is a job with its slots.
type Job struct {
	ID terms.JobID
	// versions are the kept ones, oldest first; the last is the newest.
	versions                []facts.JobVersion
	stop                    bool
	submitted, changed      terms.Index
	finished                terms.Index
	submittedAt, finishedAt terms.Time
	update                  facts.Update
	tasks                   []*task
	// members is the list of its members, with plugins, and roster the entry with which it became so.
	members string
	roster  terms.Index
	// awaits are the jobs that have to succeed first.
	awaits []terms.JobName
	// suspended tells that nothing is to run for now.
	suspended bool
	// state is what policies made of it.
	state facts.PolicyState
	// expired tells that it is forgotten at the end of the entry, replaced that another job has its name.
	expired, replaced bool
	// touched tells that something happened to it in this entry, so that its update is looked at.
	touched bool
	volumes *keeping.Twin
}

type task struct {
	job     *Job
	number  int
	name    terms.TaskName
	desired uint32
	// most is the most that any version of it has wanted.
	most    amounts.Most
	slots   []*slot
	failure facts.Failure
	// restarts is how often policies restarted it; restarting tells that nothing begins before all that lives has ended.
	restarts   uint32
	restarting bool
	// completion is what policies make of it that all of it has succeeded.
	completion facts.Completion
	// sealed tells whether no more instances begin.
	sealed facts.Seal
	// softWait is that of the seats that take any node, and of the others.
	softWait [2]softWait
}

// slot is the place of one instance, with its seats.
type slot struct {
	task     *task
	index    uint32
	seats    [3]seat
	attempts retries.Attempts
}

// seat has one allocation, with what that was given; a seat that is not the main one may be empty.
type seat struct {
	facts.Slot
	slot    *slot
	kind    facts.Seat
	ports   []facts.PortUse
	devices []facts.DeviceUse
}

func (t *task) newSlot() *slot {
	s := &slot{task: t, index: uint32(len(t.slots))}
	for kind := range s.seats {
		s.seats[kind].slot, s.seats[kind].kind = s, facts.Seat(kind)
	}
	return s
}

func (s *slot) main() *seat { return &s.seats[facts.MainSeat] }

func (s *slot) wanted() bool { return !s.task.job.stop && s.index < s.task.desired }

// gone tells whether the slot was dropped.
func (s *slot) gone() bool { return int(s.index) >= len(s.task.slots) || s.task.slots[s.index] != s }

func (s *seat) taken() bool { return s.kind == facts.MainSeat || s.Slot != facts.Slot{} }

func (s *seat) job() *Job { return s.slot.task.job }

// spec returns what its allocation was ordered with, or is to be.
func (s *seat) spec() *terms.Task { return s.slot.task.spec(s.Version) }

func (s *seat) waits() bool {
	return s.taken() && s.Phase == facts.Waiting && s.slot.index < s.slot.task.desired
}

// each visits the seats that are taken, in order.
func (t *task) each(visit func(*seat)) {
	for _, slot := range t.slots {
		for kind := range slot.seats {
			if s := &slot.seats[kind]; s.taken() {
				visit(s)
			}
		}
	}
}

func (j *Job) each(visit func(*seat)) {
	for _, t := range j.tasks {
		t.each(visit)
	}
}

// busy tells whether anything of the job waits or runs.
func (j *Job) busy() bool { return slices.ContainsFunc(j.tasks, (*task).busy) }

func (t *task) busy() bool {
	busy := false
	t.each(func(s *seat) {
		busy = busy || s.Phase.Holds() || s.waits() || s.kind == facts.MainSeat && s.Phase == facts.Rescheduling
	})
	return busy
}

// on returns the seats that take room on a node, in order.
func (m *Model) on(n *Node) []*seat {
	var all []*seat
	for _, j := range m.Jobs {
		j.each(func(s *seat) {
			if s.Phase.Holds() && s.Node == n.number {
				all = append(all, s)
			}
		})
	}
	return all
}

// besideFirst orders seats for what is done to one after the other: one beside a main one may take the place of that.
func besideFirst(all []*seat) []*seat {
	slices.SortStableFunc(all, func(a, b *seat) int { return cmp.Compare(b.kind, a.kind) })
	return all
}

// put replaces the row of a seat. What takes no room has no ports and devices, and what is not wanted and takes none is
// dropped from the end of its task.
func (m *Model) put(s *seat, row facts.Slot) {
	s.Slot = row
	if !row.Phase.Holds() {
		s.ports, s.devices = nil, nil
	}
	s.job().touched = true
	s.slot.task.trim()
	s.job().endSoftWait()
}

func (s *slot) holds() bool {
	return slices.ContainsFunc(s.seats[:], func(one seat) bool { return one.Phase.Holds() })
}

func (t *task) trim() {
	for n := len(t.slots); n > int(t.desired) && !t.slots[n-1].holds(); n-- {
		t.drop(t.slots[n-1])
		t.slots = slices.Clip(t.slots[:n-1]) // whoever goes through them has those that there were
	}
}

// move moves what is in one seat of a slot to another.
func (m *Model) move(from *seat, to facts.Seat) {
	target := &from.slot.seats[to]
	if from.Order == 0 {
		from.Order, from.Node = target.Order, target.Node // that of the last one there
	}
	target.Slot, target.ports, target.devices = from.Slot, from.ports, from.devices
	from.Slot, from.ports, from.devices = facts.Slot{}, nil, nil
	if from.kind == facts.MainSeat {
		from.Slot = facts.Slot{Order: target.Order, Node: target.Node, Phase: facts.Stopped}
	}
	from.job().touched = true
	from.job().endSoftWait()
}

func (j *Job) newest() *terms.Job { return j.versions[len(j.versions)-1].Spec }

func (j *Job) version() uint32 { return j.versions[len(j.versions)-1].Number }

// spec returns what the job is in a version, 0 for the newest; nil if that is not kept.
func (j *Job) spec(version uint32) *terms.Job {
	for _, v := range j.versions {
		if v.Number == cmp.Or(version, j.version()) {
			return v.Spec
		}
	}
	return nil
}

// spec returns what the task is in a version of the job, 0 for the newest; nil if that has no such task.
func (t *task) spec(version uint32) *terms.Task {
	spec := t.job.spec(version)
	for i := 0; spec != nil && i < len(spec.Tasks); i++ {
		if spec.Tasks[i].Name == t.name {
			return &spec.Tasks[i]
		}
	}
	return nil
}

func (m *Model) jobOf(name terms.JobName) *Job {
	for _, j := range m.Jobs {
		if j.newest().Name == name && !j.replaced {
			return j
		}
	}
	return nil
}

func (m *Model) submit(against uint32, spec *terms.Job) bool {
	j := m.jobOf(spec.Name)
	present := uint32(0)
	if j != nil && j.finished == 0 {
		present = j.version()
	}
	if len(validate.Job(spec, m.rules)) > 0 || !m.isLeaf(spec.Name.Pool()) || present != 0 && j.stop ||
		against != present {
		return false
	}
	switch {
	case present == 0:
		return m.first(j, spec)
	case !reading.Lasts(j.newest(), spec), j.outgrown(spec), m.beyond(j, spec):
		return false
	case !reflect.DeepEqual(j.newest(), spec):
		m.change(j, facts.JobVersion{Kind: facts.Submitted, Spec: spec})
	}
	return true
}

// first brings a job, in the place of an old one of its name that has ended, if there is one, and if all jobs that it
// comes after may still succeed, or have.
func (m *Model) first(old *Job, spec *terms.Job) bool {
	vain := func(name terms.JobName) bool {
		j := m.jobOf(name)
		return j == nil || j.newest().Type != terms.Batch || j.finished != 0 && !j.succeeded()
	}
	if slices.ContainsFunc(spec.After, vain) || m.beyond(nil, spec) || m.volumes.Full(&m.limits, spec) {
		return false
	}
	if old != nil {
		m.expire(old)
		old.replaced = true
	}
	m.begin(spec)
	return true
}

// outgrown tells whether a version wants another number of a sealed task.
func (j *Job) outgrown(spec *terms.Job) bool {
	for i := range spec.Tasks {
		for _, t := range j.tasks {
			if now := t.spec(0); t.name == spec.Tasks[i].Name && t.sealed.Entry > 0 && now != nil &&
				now.Instances != spec.Tasks[i].Instances {
				return true
			}
		}
	}
	return false
}

// begin brings a job. All but batch jobs come as an update from nothing.
func (m *Model) begin(spec *terms.Job) {
	m.lastJob++
	j := &Job{ID: m.lastJob, submitted: m.index, submittedAt: m.time, volumes: m.volumes}
	m.Jobs = append(m.Jobs, j)
	m.addVersion(j, facts.JobVersion{Kind: facts.Submitted, Spec: spec})
	for _, name := range spec.After {
		if m.jobOf(name).finished == 0 {
			j.awaits = append(j.awaits, name)
		}
	}
	slices.Sort(j.awaits)
	for i, t := range j.tasks {
		if spec.Type != terms.Daemon {
			m.want(t, spec.Tasks[i].Instances)
		}
	}
	if spec.Type != terms.Batch {
		m.beginUpdate(j, 0)
	}
}

// addVersion makes a version the newest. Instances that are as good as one of it are of it from now on.
func (m *Model) addVersion(j *Job, v facts.JobVersion) {
	v.Number, v.Index, v.At = 1, m.index, m.time
	if len(j.versions) > 0 {
		v.Number = j.version() + 1
	}
	j.versions, j.changed = append(j.versions, v), m.index
	j.state.Restarts = 0
	for _, t := range j.tasks {
		t.restarts = 0
	}
	for i := range v.Spec.Tasks {
		name := v.Spec.Tasks[i].Name
		if !slices.ContainsFunc(j.tasks, func(t *task) bool { return t.name == name }) {
			j.tasks = append(j.tasks, &task{job: j, number: len(j.tasks), name: name})
		}
		t := j.tasks[slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == name })]
		t.most = t.most.Or(&v.Spec.Tasks[i])
	}
	for _, t := range j.tasks {
		m.adopt(t)
	}
	j.endSoftWait()
	m.dropVersions(j)
}

// adopt makes instances as good as ones of the newest version be of it. Those for which other rules about nodes count
// stay only where they may: without themselves, and without those that may not.
func (m *Model) adopt(t *task) {
	var all []*seat
	for _, main := range []bool{true, false} {
		t.each(func(s *seat) {
			if (s.kind == facts.MainSeat) == main && s.Version != 0 && s.Version != t.job.version() && m.asGood(t, s.Version) {
				all = append(all, s)
			}
		})
	}
	left := map[*seat]bool{}
	for _, s := range all {
		if s.Phase == facts.Stopping && s.Cause != facts.BySuspension {
			continue
		}
		left[s] = true
		if s.Phase.Stays() && reading.Stricter(s.spec(), t.spec(0)) && !m.mayStay(s, left) {
			continue
		}
		delete(left, s)
		if s.Version = t.job.version(); s.Phase == facts.Waiting && s.kind == facts.MainSeat {
			s.Version = 0
		}
	}
}

// asGood tells whether an instance of an earlier version is as good as one of the newest, if its node does: it is the
// same program with the same plugins, and nobody asked for a restart since.
func (m *Model) asGood(t *task, version uint32) bool {
	for _, v := range t.job.versions {
		restarted := v.Kind == facts.Restarted && v.Number > version && (v.Task == "" || v.Task == t.name)
		if restarted && !facts.TakenBack(t.job.versions, v.Number, m.rules) ||
			v.Number == version && !reflect.DeepEqual(v.Spec.Plugins, t.job.newest().Plugins) {
			return false
		}
	}
	return reading.SameProgram(t.spec(version), t.spec(0))
}

// dropVersions forgets old versions that nothing refers to.
func (m *Model) dropVersions(j *Job) {
	if len(j.versions) <= int(m.limits.Versions) {
		return
	}
	used := map[uint32]bool{j.good(j.version()): true, j.update.From: true}
	j.each(func(s *seat) { used[s.Version] = true })
	newest := j.version()
	j.versions = slices.DeleteFunc(slices.Clone(j.versions), func(v facts.JobVersion) bool {
		return v.Number+m.limits.Versions <= newest && !used[v.Number]
	})
}

// good returns the newest version below one to which an update succeeded, 0 if there is none.
func (j *Job) good(below uint32) uint32 {
	best := uint32(0)
	for _, v := range j.versions {
		if v.Number < below && (v.Outcome == facts.UpdateSucceeded || v.Outcome == facts.RolledBack) {
			best = v.Number
		}
	}
	return best
}

// want changes how many slots of a task there should be. What was not wanted and is again begins anew, if nothing has
// come of it.
func (m *Model) want(t *task, count uint32) {
	before := t.desired
	t.desired = count
	t.job.touched = true
	daemon := t.job.newest().Type == terms.Daemon
	for i := before; i < count && int(i) < len(t.slots); i++ {
		if s := t.slots[i].main(); s.Phase == facts.Stopped || s.Phase == facts.Waiting {
			s.Slot = facts.Slot{Order: s.Order, Node: s.Node}
			if m.volumes.On() && s.Order != 0 && t.keeps() {
				s.Preference = facts.OnlyNode
			}
		}
	}
	for len(t.slots) < int(count) {
		t.slots = append(t.slots, t.newSlot())
		if daemon {
			t.slots[len(t.slots)-1].main().Slot = facts.Slot{Phase: facts.Stopped, Version: t.job.version()}
		}
	}
	m.findVolumes(t, before)
	t.each(func(s *seat) {
		if s.slot.index >= count && s.kind != facts.MainSeat && s.Phase == facts.Waiting {
			s.Slot = facts.Slot{}
		}
	})
	t.trim()
	t.job.endSoftWait() // others may come after it
}

// onJob lets a request act on a job that runs, if it has the version that the writer saw; 0 is any.
func (m *Model) onJob(name terms.JobName, against uint32, act func(*Job) bool) bool {
	j := m.jobOf(name)
	switch {
	case j == nil || j.finished != 0 || against != 0 && against != j.version():
		return false
	case j.stop && !reading.Now(m.obeyed):
		return true
	}
	return act(j)
}

// kill ends a job: what waits is dropped, what runs is to stop, and what may run out of reach is waited for.
func (m *Model) kill(j *Job) bool {
	if j.stop {
		return true
	}
	j.stop, j.changed = true, m.index
	cause := map[facts.PolicyOutcome]facts.Cause{
		facts.NoOutcome: facts.ByJob, facts.Terminated: facts.ByTermination, facts.Completed: facts.ByCompletion,
	}[j.state.Outcome]
	j.each(func(s *seat) {
		row := s.Slot
		switch {
		case s.slot.index >= s.slot.task.used() || row.Phase.Final() || row.Phase == facts.Stopping:
			return
		case s.mayLive():
			row.Cause = cause
			m.put(s, row)
			return
		}
		next := facts.Stopped
		if row.Phase == facts.Assigned || row.Phase == facts.Running {
			next = facts.Stopping
		}
		row.Phase, row.Since, row.Deadline, row.Preference, row.Cause = next, m.time, 0, facts.AnyNode, cause
		if row.Version == 0 {
			row.Version = j.version()
		}
		if next == facts.Stopped && s.kind != facts.MainSeat {
			row = facts.Slot{}
		}
		m.put(s, row)
	})
	for _, t := range j.tasks {
		t.completion = facts.Completion{}
		m.want(t, min(t.desired, t.used()))
	}
	m.endUpdate(j)
	m.finish(j) // whatever else is due of it
	return true
}

// hurry lets what is being stopped of a job end at once.
func (m *Model) hurry(j *Job, which func(*seat) bool) bool {
	j.each(func(s *seat) {
		if s.Phase == facts.Stopping && which(s) {
			s.Since = 0
		}
	})
	return true
}

// used returns how many slots ever had an allocation, be it one whose volumes were given up; those of a daemon all
// belong to their nodes.
func (t *task) used() uint32 {
	fresh := func(row *facts.Slot) bool { return row.Order == 0 && row.Since == 0 }
	n := len(t.slots)
	for ; n > 0 && t.job.newest().Type != terms.Daemon && fresh(&t.slots[n-1].main().Slot); n-- {
	}
	return uint32(n)
}

func (m *Model) revert(j *Job, to uint32) bool {
	for _, v := range j.versions {
		if v.Number != to {
			continue
		}
		if j.outgrown(v.Spec) {
			return false
		}
		if !reflect.DeepEqual(v.Spec, j.newest()) {
			m.change(j, facts.JobVersion{Kind: facts.Reverted, Of: to, Spec: v.Spec})
		}
		return true
	}
	return false
}

// suspend ends all of a job that runs and lets nothing more run, or lets it run again.
func (m *Model) suspend(j *Job, suspended bool) bool {
	if j.newest().Type == terms.Daemon {
		return false
	}
	if j.suspended == suspended {
		return true
	}
	j.suspended, j.touched = suspended, true
	if j.update.State.Rolls() {
		j.update.ProgressAt = m.time
	}
	j.endSoftWait()
	var all []*seat
	j.each(func(s *seat) {
		if suspended && (s.byPolicy() || s.Phase.Holds() && s.Phase != facts.Stopping) {
			all = append(all, s)
		}
	})
	for _, s := range besideFirst(all) {
		if s.byPolicy() {
			m.anew(s, s.Slot)
		} else {
			m.stop(s, facts.BySuspension)
		}
	}
	if !suspended && j.state.Last.Action == lifecycle.Abort {
		j.state.Last = facts.PolicyAction{}
	}
	return true
}

func (m *Model) restart(j *Job, name terms.TaskName) bool {
	named := slices.ContainsFunc(j.newest().Tasks, func(t terms.Task) bool { return t.Name == name })
	if name != "" && !named {
		return false
	}
	m.change(j, facts.JobVersion{Kind: facts.Restarted, Of: j.version(), Spec: j.newest(), Task: name})
	return true
}

func (m *Model) endAllocation(j *Job, c *command.EndAllocation) bool {
	at := slices.IndexFunc(j.tasks, func(t *task) bool { return t.name == c.Slot.Task })
	if at < 0 || int(c.Slot.Index) >= len(j.tasks[at].slots) {
		return false
	}
	t := j.tasks[at]
	s := t.slots[c.Slot.Index].ordered(c.Order)
	switch {
	case s == nil || s.Phase.Final() || s.Phase == facts.Unknown || s.Phase == facts.Waiting && s.spec() == nil,
		!c.WithoutVolumes && s.Phase == facts.Waiting, s.Phase == facts.Stopping && (!c.Now || c.WithoutVolumes),
		c.WithoutVolumes && (!t.tied(s.spec()) || j.newest().Type == terms.Daemon):
		return false
	case s.Phase == facts.Stopping:
	case c.WithoutVolumes:
		m.stop(s, facts.ByRelease)
	default:
		m.stop(s, map[bool]facts.Cause{true: facts.ByMove, false: facts.ByRestart}[c.Elsewhere])
	}
	return !c.Now || m.hurry(j, func(one *seat) bool { return one == s })
}

// ordered returns the seat with the allocation of an order, nil if none has it. An empty seat may have kept the order
// of what went aside.
func (s *slot) ordered(order terms.Index) *seat {
	var found *seat
	for kind := range s.seats {
		one := &s.seats[kind]
		if order != 0 && one.taken() && one.Order == order &&
			(found == nil || found.Phase == facts.Waiting || found.Phase == facts.Stopped) {
			found = one
		}
	}
	return found
}
