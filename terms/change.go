package terms

import (
	"slices"

	"starling/terms/codec"
	"starling/terms/constraint"
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

func nothing[T any](_, _ *T) Change { return NoChange }

func inPlace(_, _ *Task) Change { return InPlace }

func replace[T any](_, _ *T) Change { return Replace }

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

// ChangeTo returns what another version of the job means for an instance of this one, whatever its task. Other plugins
// replace it: what they put into its environment stays there for its life.
func (s *Job) ChangeTo(other *Job) Change {
	change := NoChange
	for _, d := range differences(jobFields[:], s, other) {
		change = max(change, d.Change)
	}
	return change
}

// Equal tells whether two jobs are the same in every field.
func (s *Job) Equal(other *Job) bool { return s == other || codec.Equal(s, other, codeJob) }

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
func (t *Task) Differences(other *Task) []Difference { return differences(taskFields[:], t, other) }

// differences lists each key once, with the largest change of its rows.
func differences[T any](fields []field[T], a, b *T) []Difference {
	var all []Difference
	if a == b {
		return nil
	}
	writer := codec.Writer()
	for i := range fields {
		f := &fields[i]
		if codec.Same(writer, a, b, f.code) {
			continue
		}
		at := slices.IndexFunc(all, func(d Difference) bool { return d.Key == f.key })
		if at < 0 {
			at, all = len(all), append(all, Difference{Key: f.key})
		}
		all[at].Change = max(all[at].Change, f.change(a, b))
	}
	return all
}
