package jobspec

import (
	"starling/cluster"
)

// Document is one job of a job file.
type Document struct {
	Spec cluster.JobSpec
	// Line is where the job begins, from 1.
	Line int
}

// Parse reads a job file: YAML 1.2 (or JSON), one job a document. The error, if any, is of type Errors and holds
// everything that is wrong with all documents; file names the data in it.
func Parse(file string, data []byte) ([]Document, error) {
	return nil, Errors{{File: file, Line: 1, Column: 1, Reason: "job files are not read yet"}}
}
