package terms

import (
	"slices"

	"starling/terms/constraint"
	"starling/terms/lifecycle"
)

// Change is what a new version means for an instance of an older one.
type Change uint8

// The changes.
const (
	// NoChange: the versions do not differ in what concerns an instance.
	NoChange Change = iota
	// InPlace: it goes on and is of the new version from now on.
	InPlace
	// ByNode: the rules about nodes differ. It goes on in place if its node satisfies the new ones, and is replaced
	// otherwise.
	ByNode
	// Replace: only a new instance can be of the new version.
	Replace
)

// String returns the change in words.
func (c Change) String() string { return [...]string{"none", "in place", "by node", "replace"}[c] }

// field is a field of a job or a task: its key in job files, what another value means for an instance, and when two
// values are the same.
type field[T any] struct {
	key    string
	change func(a, b *T) Change
	same   func(a, b *T) bool
}

func nothing[T any](_, _ *T) Change { return NoChange }

func inPlace(_, _ *Task) Change { return InPlace }

func replace(_, _ *Task) Change { return Replace }

// asTold replaces an instance whose supervisor was told something else at its start about stopping it by itself: the
// fold counts on that.
func asTold(a, b *Task) Change {
	if a.selfStop() != b.selfStop() {
		return Replace
	}
	return InPlace
}

// byRules asks the node of an instance if it must satisfy other rules. Preferences only tell where the next one goes.
func byRules(a, b *Task) Change {
	if slices.EqualFunc(a.hard(), b.hard(), constraint.Same) {
		return InPlace
	}
	return ByNode
}

// hard returns the constraints that are no preferences.
func (t *Task) hard() (all []constraint.Constraint) {
	for i := range t.Constraints {
		if !t.Constraints[i].Soft {
			all = append(all, t.Constraints[i])
		}
	}
	return all
}

// byBound asks the node of an instance if it may have fewer instances than before.
func byBound(a, b *Task) Change {
	if b.PerNodeMax == 0 || a.PerNodeMax != 0 && a.PerNodeMax < b.PerNodeMax {
		return InPlace
	}
	return ByNode
}

// jobFields has a row for each field of Job.
var jobFields = [...]field[Job]{
	{"job", nothing[Job], func(a, b *Job) bool { return a.Name == b.Name }},
	{"type", nothing[Job], func(a, b *Job) bool { return a.Type == b.Type }},
	{"priority", nothing[Job], func(a, b *Job) bool { return a.Priority == b.Priority }},
	{"preemptible", nothing[Job], func(a, b *Job) bool { return a.Preemption == b.Preemption }},
	{"revocable", nothing[Job], func(a, b *Job) bool { return a.Revocable == b.Revocable }},
	{"controller", nothing[Job], func(a, b *Job) bool { return a.Controller == b.Controller }},
	{"kill_on_preempt", nothing[Job], func(a, b *Job) bool { return a.KillOnPreempt == b.KillOnPreempt }},
	{"task_scheduler", nothing[Job], func(a, b *Job) bool { return a.TaskScheduler == b.TaskScheduler }},
	{"coverage", nothing[Job], func(a, b *Job) bool { return a.Coverage == b.Coverage }},
	{"percent", nothing[Job], func(a, b *Job) bool { return a.Percent == b.Percent }},
	{"min_available", nothing[Job], func(a, b *Job) bool { return a.MinAvailable == b.MinAvailable }},
	{"within", nothing[Job], func(a, b *Job) bool { return a.Within == b.Within }},
	{"grow", nothing[Job], func(a, b *Job) bool { return a.Grow == b.Grow }},
	{"min_success", nothing[Job], func(a, b *Job) bool { return a.MinSuccess == b.MinSuccess }},
	{"policies", nothing[Job], func(a, b *Job) bool { return samePolicies(a.Policies, b.Policies) }},
	{"max_restarts", nothing[Job], func(a, b *Job) bool { return a.MaxRestarts == b.MaxRestarts }},
	{"keep", nothing[Job], func(a, b *Job) bool { return a.KeepMillis == b.KeepMillis }},
	{"after", nothing[Job], func(a, b *Job) bool { return slices.Equal(a.After, b.After) }},
	{"update", nothing[Job], func(a, b *Job) bool { return a.Update == b.Update }},
	{"plugins", func(_, _ *Job) Change { return Replace }, samePlugins},
	{"tasks", nothing[Job], func(a, b *Job) bool {
		return slices.EqualFunc(a.Tasks, b.Tasks, func(a, b Task) bool { return equal(taskFields[:], &a, &b) })
	}},
}

// taskFields has a row for each field of Task. What concerns only what comes after an end replaces nothing.
var taskFields = [...]field[Task]{
	{"name", replace, func(a, b *Task) bool { return a.Name == b.Name }},
	{"instances", nothing[Task], func(a, b *Task) bool { return a.Instances == b.Instances }},
	{"min_available", nothing[Task], func(a, b *Task) bool { return a.MinAvailable == b.MinAvailable }},
	{"max_running", nothing[Task], func(a, b *Task) bool { return a.MaxRunning == b.MaxRunning }},
	{"percent", nothing[Task], func(a, b *Task) bool { return a.Percent == b.Percent }},
	{"max_run_time", inPlace, func(a, b *Task) bool { return a.MaxRunMillis == b.MaxRunMillis }},
	{"after", nothing[Task], func(a, b *Task) bool { return slices.Equal(a.After, b.After) }},
	{"command", replace, func(a, b *Task) bool { return slices.Equal(a.Command, b.Command) }},
	{"env", replace, func(a, b *Task) bool { return slices.Equal(a.Env, b.Env) }},
	{"work_dir", replace, func(a, b *Task) bool { return a.WorkDir == b.WorkDir }},
	{"user", replace, func(a, b *Task) bool { return a.User == b.User }},
	{"stop_delay", inPlace, func(a, b *Task) bool { return a.StopDelayMillis == b.StopDelayMillis }},
	{"stop_grace", asTold, func(a, b *Task) bool { return a.StopGraceMillis == b.StopGraceMillis }},
	{"on_members_change", inPlace, func(a, b *Task) bool { return a.OnMembersChange == b.OnMembersChange }},
	{"restart", inPlace, func(a, b *Task) bool { return a.Restart == b.Restart }},
	{"reschedule", inPlace, func(a, b *Task) bool { return a.Reschedule == b.Reschedule }},
	{"policies", inPlace, func(a, b *Task) bool { return samePolicies(a.Policies, b.Policies) }},
	{"max_restarts", inPlace, func(a, b *Task) bool { return a.MaxRestarts == b.MaxRestarts }},
	{"disconnect", asTold, func(a, b *Task) bool { return a.Disconnect == b.Disconnect }},
	{"checks", replace, func(a, b *Task) bool {
		return slices.EqualFunc(a.Checks, b.Checks, func(a, b Check) bool { return a.equal(&b) })
	}},
	{"volumes", replace, func(a, b *Task) bool { return slices.Equal(a.Volumes, b.Volumes) }},
	{"resources", replace, func(a, b *Task) bool { return a.Resources == b.Resources }},
	{"devices", replace, func(a, b *Task) bool { return slices.EqualFunc(a.Devices, b.Devices, DeviceRequest.Equal) }},
	{"ports", replace, func(a, b *Task) bool { return slices.Equal(a.Ports, b.Ports) }},
	{"constraints", byRules, func(a, b *Task) bool {
		return slices.EqualFunc(a.Constraints, b.Constraints, constraint.Same)
	}},
	{"labels", replace, func(a, b *Task) bool { return slices.Equal(a.Labels, b.Labels) }},
	{"per_machine_max", byBound, func(a, b *Task) bool { return a.PerNodeMax == b.PerNodeMax }},
	{"spread_over", inPlace, func(a, b *Task) bool { return a.SpreadOver == b.SpreadOver }},
	{"placement", inPlace, func(a, b *Task) bool { return a.Placement == b.Placement }},
}

func samePolicies(a, b []lifecycle.Policy) bool {
	return slices.EqualFunc(a, b, lifecycle.Policy.Equal)
}

// samePlugins tells whether two versions of a job tell their members the same.
func samePlugins(a, b *Job) bool { return slices.EqualFunc(a.Plugins, b.Plugins, PluginRequest.equal) }

func equal[T any](fields []field[T], a, b *T) bool {
	return !slices.ContainsFunc(fields, func(f field[T]) bool { return !f.same(a, b) })
}

// ChangeTo returns what another version of the job means for an instance of this one, whatever its task. Other plugins
// replace it: what they put into its environment stays there for its life.
func (s *Job) ChangeTo(other *Job) Change {
	change := NoChange
	for _, f := range jobFields {
		if !f.same(s, other) {
			change = max(change, f.change(s, other))
		}
	}
	return change
}

// Equal tells whether two jobs are the same in every field.
func (s *Job) Equal(other *Job) bool { return equal(jobFields[:], s, other) }

// Scales tells whether another version differs in nothing but how many instances there are.
func (s *Job) Scales(other *Job) bool {
	return !s.Equal(other) && s.unsized().Equal(other.unsized())
}

// unsized returns the job without the numbers of its instances.
func (s *Job) unsized() *Job {
	one := *s
	one.MinAvailable, one.Tasks = 0, slices.Clone(s.Tasks)
	for i := range one.Tasks {
		one.Tasks[i].Instances, one.Tasks[i].MinAvailable = 0, 0
	}
	return &one
}

// ChangeTo returns what another version of the task means for an instance of this one. A missing task, nil, is like no
// other.
func (t *Task) ChangeTo(other *Task) Change {
	if t == nil || other == nil {
		return Replace
	}
	change := NoChange
	for _, d := range t.Differences(other) {
		change = max(change, d.Change)
	}
	return change
}

// selfStop is what the supervisor of an instance was told at its start about stopping it by itself.
func (t *Task) selfStop() (told struct{ after, grace uint32 }) {
	if t.StopsItself() {
		told.after, told.grace = t.Disconnect.StopAfterMillis, t.StopGraceMillis
	}
	return told
}

// Difference is a field in which two versions of a task differ: its key in job files, and what that means for an
// instance.
type Difference struct {
	Key    string
	Change Change
}

// Differences lists in which fields two versions of a task differ.
func (t *Task) Differences(other *Task) []Difference {
	var all []Difference
	for _, f := range taskFields {
		if !f.same(t, other) {
			all = append(all, Difference{f.key, f.change(t, other)})
		}
	}
	return all
}
