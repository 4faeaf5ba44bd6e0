package explain

import (
	"slices"

	"starling/cluster/facts"
	"starling/schedule/explain/wording"
	"starling/terms"
)

// Reader is who is told, and what is known besides the value.
type Reader struct {
	// Said is what peers say of starts, nil if none was asked.
	Said Said
	// Try tells what would make room, see package forecast; if it is nil, nothing is said of that.
	Try Try
	// Sees tells the jobs of which pools the reader may see, nil for all. Others are counted, and not named.
	Sees func(terms.PoolPath) bool
}

// seen tells whether the reader may see a job.
func (r *Reader) seen(name terms.JobName) bool { return r.Sees == nil || r.Sees(name.Pool()) }

// hidden stands for the name of a job that the reader may not see.
const hidden = "a job of another pool"

// jobName names a job, if the reader may see it.
func (e *explainer) jobName(id terms.JobID) string {
	if name := e.s.Job(id).Name(); e.seen(name) {
		return string(name)
	}
	return hidden
}

// instances names instances, but counts those that the reader may not see.
func (e *explainer) instances(all []facts.SlotRef) string {
	var names []string
	for _, r := range all {
		if name := e.s.NameOf(r); e.seen(name.Job) {
			names = append(names, name.String())
		}
	}
	if others := len(all) - len(names); others > 0 {
		names = slices.Insert(names, min(len(names), wording.Most-1),
			wording.Plural(others, "instance of another pool", "instances of other pools"))
	}
	return wording.Some(names)
}
