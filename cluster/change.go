package cluster

import (
	"slices"

	"starling/cluster/constraint"
)

// Change is what a new version means for an instance of an older one.
type Change uint8

// The changes.
const (
	// NoChange: the versions do not differ in what concerns an instance.
	NoChange Change = iota
	// InPlace: it goes on and is of the new version from now on.
	InPlace
	// Replace: only a new instance can be of the new version.
	Replace
)

// String returns the change in words.
func (c Change) String() string { return [...]string{"none", "in place", "replace"}[c] }

// field is a field of a job or a task: its key in job files, what another value means for an instance, and when two values
// are the same.
type field[T any] struct {
	key    string
	change Change
	same   func(a, b *T) bool
}

// jobFields has a row for each field of JobSpec.
var jobFields = [...]field[JobSpec]{
	{"job", NoChange, func(a, b *JobSpec) bool { return a.Name == b.Name }},
	{"type", NoChange, func(a, b *JobSpec) bool { return a.Type == b.Type }},
	{"update", NoChange, func(a, b *JobSpec) bool { return a.Update == b.Update }},
	{"tasks", NoChange, func(a, b *JobSpec) bool {
		return slices.EqualFunc(a.Tasks, b.Tasks, func(a, b TaskSpec) bool { return equal(taskFields[:], &a, &b) })
	}},
}

// taskFields has a row for each field of TaskSpec. What concerns only what comes after an end replaces nothing.
var taskFields = [...]field[TaskSpec]{
	{"name", Replace, func(a, b *TaskSpec) bool { return a.Name == b.Name }},
	{"instances", NoChange, func(a, b *TaskSpec) bool { return a.Instances == b.Instances }},
	{"command", Replace, func(a, b *TaskSpec) bool { return slices.Equal(a.Command, b.Command) }},
	{"env", Replace, func(a, b *TaskSpec) bool { return slices.Equal(a.Env, b.Env) }},
	{"work_dir", Replace, func(a, b *TaskSpec) bool { return a.WorkDir == b.WorkDir }},
	{"user", Replace, func(a, b *TaskSpec) bool { return a.User == b.User }},
	{"stop_grace", InPlace, func(a, b *TaskSpec) bool { return a.StopGraceMillis == b.StopGraceMillis }},
	{"restart", InPlace, func(a, b *TaskSpec) bool { return a.Restart == b.Restart }},
	{"reschedule", InPlace, func(a, b *TaskSpec) bool { return a.Reschedule == b.Reschedule }},
	{"disconnect", InPlace, func(a, b *TaskSpec) bool { return a.Disconnect == b.Disconnect }},
	{"checks", Replace, func(a, b *TaskSpec) bool {
		return slices.EqualFunc(a.Checks, b.Checks, func(a, b Check) bool { return a.equal(&b) })
	}},
	{"volumes", Replace, func(a, b *TaskSpec) bool { return slices.Equal(a.Volumes, b.Volumes) }},
	{"resources", Replace, func(a, b *TaskSpec) bool { return a.Resources == b.Resources }},
	{"devices", Replace, func(a, b *TaskSpec) bool { return slices.EqualFunc(a.Devices, b.Devices, DeviceRequest.Equal) }},
	{"ports", Replace, func(a, b *TaskSpec) bool { return slices.Equal(a.Ports, b.Ports) }},
	{"constraints", Replace, func(a, b *TaskSpec) bool {
		return slices.EqualFunc(a.Constraints, b.Constraints, constraint.Same)
	}},
	{"labels", Replace, func(a, b *TaskSpec) bool { return slices.Equal(a.Labels, b.Labels) }},
	{"per_machine_max", Replace, func(a, b *TaskSpec) bool { return a.PerNodeMax == b.PerNodeMax }},
	{"spread_over", Replace, func(a, b *TaskSpec) bool { return a.SpreadOver == b.SpreadOver }},
	{"placement", Replace, func(a, b *TaskSpec) bool { return a.Placement == b.Placement }},
}

func equal[T any](fields []field[T], a, b *T) bool {
	return !slices.ContainsFunc(fields, func(f field[T]) bool { return !f.same(a, b) })
}

// Equal tells whether two jobs are the same in every field.
func (s *JobSpec) Equal(other *JobSpec) bool { return equal(jobFields[:], s, other) }

// ChangeTo returns what another version of the task means for an instance of this one. A missing task, nil, is like no
// other.
func (t *TaskSpec) ChangeTo(other *TaskSpec) Change {
	if t == nil || other == nil {
		return Replace
	}
	change := NoChange
	for _, f := range taskFields {
		if f.change > change && !f.same(t, other) {
			change = f.change
		}
	}
	if t.selfStop() != other.selfStop() {
		change = Replace
	}
	return change
}

// selfStop is what the supervisor of an instance was told at its start about stopping it by itself. The fold counts on
// that, so nothing that was not told so may be of a version that says so.
func (t *TaskSpec) selfStop() (told struct{ after, grace uint32 }) {
	if t.Disconnect.StopAfterMillis > 0 {
		told.after, told.grace = t.Disconnect.StopAfterMillis, t.StopGraceMillis
	}
	return told
}

// SameProgram tells whether an instance of one task is as good as one of the other.
func (t *TaskSpec) SameProgram(other *TaskSpec) bool { return t.ChangeTo(other) != Replace }

// ChangeBy returns what another value under a task's key of job files means for an instance; ok is false for other keys.
func ChangeBy(key string) (change Change, ok bool) {
	for _, f := range taskFields {
		if f.key == key {
			return f.change, true
		}
	}
	return NoChange, false
}

// ChangeOf returns what the newest version means for an instance of a task in an earlier version.
func (j *Job) ChangeOf(task int, version uint32) Change {
	now := j.TaskSpecOf(task, j.Version)
	change := j.TaskSpecOf(task, version).ChangeTo(now)
	for i := range j.versions {
		v := &j.versions[i]
		if change != Replace && v.Kind == Restarted && v.Number > version && (v.Task == "" || v.Task == now.Name) {
			return Replace
		}
	}
	return change
}
