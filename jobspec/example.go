package jobspec

import "starling/examples"

// Examples returns the job files that "starling init" writes, in the order in which a newcomer reads them.
func Examples() []examples.File { return examples.Files() }
