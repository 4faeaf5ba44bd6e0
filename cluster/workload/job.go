package workload

import (
	"starling/cluster/facts"
	"starling/cluster/gang"
	"starling/cluster/vector"
	"starling/cluster/want"
	"starling/terms"
	"starling/terms/constraint"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// Job is a job as it stands in the value: its facts, and what follows from them and from those of its tasks. Only the
// methods of cluster.State change it.
type Job struct {
	epoch *vector.Epoch
	facts.Job
	// Spec is the newest version.
	Spec  *terms.Job
	Tasks []*Task
	// Wanted is the most that it has ever wanted at a time.
	Wanted want.Wants
	// gang is how many instances of each task must run together, nil for a job without a gang, gangAny how many of any
	// beyond those, and GangWas how that stands as the queue knows it.
	gang    []uint32
	gangAny uint32
	GangWas gang.State
	// graph is the order of the tasks, nil if there is none.
	graph *graph
	// Row is what the job's row adds to the digest of the value.
	Row uint64
}

// NewJob returns a job with facts, of an epoch.
func NewJob(e *vector.Epoch, f facts.Job) *Job {
	// Most jobs have one version and one task: these lists begin in the job's own memory.
	whole := &struct {
		job      Job
		versions [1]facts.JobVersion
		tasks    [1]*Task
	}{job: Job{epoch: e, Job: f}}
	j := &whole.job
	if j.Tasks = whole.tasks[:0]; j.Versions == nil {
		j.Versions = whole.versions[:0]
	}
	return j
}

// Own returns the job for changing in an epoch: itself if it was made there, else a copy.
func (j *Job) Own(e *vector.Epoch) *Job {
	if j.epoch == e {
		return j
	}
	clone := *j
	clone.epoch = e
	clone.Tasks = append(make([]*Task, 0, len(j.Tasks)+1), j.Tasks...)
	clone.Versions = append(make([]facts.JobVersion, 0, len(j.Versions)+1), j.Versions...)
	return &clone
}

// Name returns the job's name.
func (j *Job) Name() terms.JobName { return j.Spec.Name }

// SpecOf returns the version with the given number, 0 for the newest, nil if it is not kept.
func (j *Job) SpecOf(version uint32) *terms.Job {
	if version == j.Version || version == 0 {
		return j.Spec
	}
	for i := range j.Versions {
		if j.Versions[i].Number == version {
			return j.Versions[i].Spec
		}
	}
	return nil
}

// TaskSpecOf returns what the slot's allocation was ordered with: the task's specification in that version.
func (j *Job) TaskSpecOf(task int, version uint32) *terms.Task {
	spec := j.SpecOf(version)
	if spec == nil {
		return nil
	}
	name := j.Tasks[task].Name
	if task < len(spec.Tasks) && spec.Tasks[task].Name == name { // as it is unless a version took or moved tasks
		return &spec.Tasks[task]
	}
	for i := range spec.Tasks {
		if spec.Tasks[i].Name == name {
			return &spec.Tasks[i]
		}
	}
	return nil
}

// TaskIndex returns the number of the named task, or -1.
func (j *Job) TaskIndex(name terms.TaskName) int {
	for i := range j.Tasks {
		if j.Tasks[i].Name == name {
			return i
		}
	}
	return -1
}

// ChangeOf returns what the newest version means for an instance of a task in an earlier version.
func (j *Job) ChangeOf(task int, version uint32, in rules.Number) terms.Change {
	now := j.TaskSpecOf(task, j.Version)
	change := j.TaskSpecOf(task, version).ChangeTo(now)
	if old := j.SpecOf(version); old != nil {
		change = max(change, old.ChangeTo(j.Spec))
	}
	for i := range j.Versions {
		v := &j.Versions[i]
		if change != terms.Replace && v.Kind == facts.Restarted && v.Number > version &&
			(v.Task == "" || v.Task == now.Name) && !facts.TakenBack(j.Versions, v.Number, in) {
			return terms.Replace
		}
	}
	return change
}

// RulesOf returns the constraints of what may wait of a task: of the newest version, or of any that is kept.
func (j *Job) RulesOf(task int, special bool) []*constraint.Constraint {
	var rules []*constraint.Constraint
	for v := range j.Versions {
		if !special && j.Versions[v].Number != j.Version {
			continue
		}
		if spec := j.TaskSpecOf(task, j.Versions[v].Number); spec != nil {
			for i := range spec.Constraints {
				rules = append(rules, &spec.Constraints[i])
			}
		}
	}
	return rules
}

// Tied tells whether instances of a task with a spec stay where their volumes are: also when their version has none, as
// long as one is kept that has, so that a roll back finds them. Before rules.Volumes they did not.
func (j *Job) Tied(task int, spec *terms.Task, number rules.Number) bool {
	return spec != nil && (len(spec.Volumes) > 0 || number >= rules.Volumes && j.HasVolumes(task))
}

// HasVolumes tells whether instances of a task have volumes in any kept version.
func (j *Job) HasVolumes(task int) bool {
	for i := range j.Versions {
		if spec := j.TaskSpecOf(task, j.Versions[i].Number); spec != nil && len(spec.Volumes) > 0 {
			return true
		}
	}
	return false
}

// KeepVolumes is how long what instances of a task have in volumes is kept for nobody, as the newest version says; 0 is
// until somebody removes them.
func (j *Job) KeepVolumes(task int) terms.Time {
	if spec := j.TaskSpecOf(task, j.Version); spec != nil {
		return terms.Time(spec.KeepVolumesMillis)
	}
	return 0
}

// Policy returns the first policy of the newest version that is about what happened to a task or to an instance of it,
// and whether it is one of the job; code is the exit code of an instance that failed.
func (j *Job) Policy(task int, e lifecycle.Event, code int32) (p lifecycle.Policy, ofJob, ok bool) {
	spec := j.TaskSpecOf(task, j.Version)
	if spec == nil {
		return p, false, false
	}
	if p, ok = lifecycle.First(spec.Policies, e, code); ok {
		return p, false, true
	}
	p, ok = lifecycle.First(j.Spec.Policies, e, code)
	return p, true, ok
}

// Most returns the most that the job has ever wanted at a time.
func (j *Job) Most() want.Wants { return j.Wanted }

// LiveSeats returns how many seats of all tasks hold room.
func (j *Job) LiveSeats() int64 {
	count := int64(0)
	for _, t := range j.Tasks {
		count += int64(t.Live())
	}
	return count
}

// SlotCount counts the slots of all tasks.
func (j *Job) SlotCount() uint32 {
	count := uint32(0)
	for _, t := range j.Tasks {
		count += uint32(t.Slots.Len())
	}
	return count
}

// ForgetAt returns when a finished job is forgotten, 0 for when there is no room for it any more.
func (j *Job) ForgetAt() terms.Time {
	if j.Spec.KeepMillis == 0 {
		return 0
	}
	return j.FinishedAt + terms.Time(j.Spec.KeepMillis)
}

// Place returns a waiting slot as an entry orders it on a node. While an update runs, it is to be healthy in time.
func (j *Job) Place(entry terms.Index, at terms.Time, waiting facts.Slot, n facts.NodeIndex) facts.Slot {
	next := facts.Slot{
		Order: entry, Since: at, Node: n, Version: waiting.Version, Phase: facts.Assigned, Failures: waiting.Failures,
		Health: waiting.Health,
	}
	if next.Version == 0 {
		next.Version = j.Version
	}
	next.Deadline = j.healthyBy(&next)
	return next
}

// healthyBy returns by when what begins to be Starting is to be healthy, 0 if no update waits for that.
func (j *Job) healthyBy(s *facts.Slot) terms.Time {
	if limit := j.Spec.Update.HealthyDeadlineMillis; limit > 0 && s.Version == j.Version && j.Update.State.Rolls() {
		return s.Since + terms.Time(limit)
	}
	return 0
}

// Unready returns an instance as it is when a check says that it is not ready any more. Nothing else is done to it: it
// is on no list, and to be healthy it has to be ready for as long as ever. No changes is that of one that was not
// ready, or whose checks say only that it was.
func (j *Job) Unready(r facts.SlotRef, s facts.Slot, at terms.Time) (next facts.Slot, changes bool) {
	if s.Phase != facts.Running || !s.Health.Ready() || !j.TaskSpecOf(int(r.Task), s.Version).AsksReadiness() {
		return s, false
	}
	s.Health, s.Since = facts.Starting, at
	s.Deadline = j.healthyBy(&s)
	return s, true
}

// IsTold tells whether what is in a seat is told to those who look for it: it is found on its node, and is ready if one
// of its checks says when.
func (j *Job) IsTold(r facts.SlotRef, s *facts.Slot) bool {
	if !s.Phase.Found() || s.Phase == facts.Running && s.Health.Ready() {
		return s.Phase.Found()
	}
	spec := j.TaskSpecOf(int(r.Task), s.Version)
	return spec == nil || !spec.AsksReadiness()
}

// MayLive tells whether nothing may take the place of a seat's allocation before it has certainly stopped itself.
func (j *Job) MayLive(r facts.SlotRef, s *facts.Slot) bool {
	return s.Phase == facts.Unknown && j.TaskSpecOf(int(r.Task), s.Version).StopsItself()
}
