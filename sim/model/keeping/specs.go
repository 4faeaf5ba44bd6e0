package keeping

import (
	"reflect"

	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
)

// Specs adds up the texts of the kept versions of a job.
func Specs(versions []facts.JobVersion) (kept workload.Specs) {
	for i := range versions {
		if !holds(versions[:i], versions[i].Spec) {
			kept.Count++
			kept.Bytes += versions[i].Spec.Bytes()
		}
	}
	return kept
}

// Exceeds tells whether a version would take a pool beyond what the specs of its jobs may take.
func (w *Twin) Exceeds(versions []facts.JobVersion, spec *terms.Job, pool workload.Specs, most int64) bool {
	return w.On() && !holds(versions, spec) && pool.Bytes+spec.Bytes() > most
}

func holds(versions []facts.JobVersion, spec *terms.Job) bool {
	for i := range versions {
		if reflect.DeepEqual(versions[i].Spec, spec) {
			return true
		}
	}
	return false
}
