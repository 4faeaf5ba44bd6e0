package jobspec

import "starling/cluster"

// Format writes a specification as a document of a job file, from which Parse reads the same specification.
func Format(spec *cluster.JobSpec) []byte { return []byte("job: " + string(spec.Name) + "\n") }
