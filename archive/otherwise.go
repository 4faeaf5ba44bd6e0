//go:build !otherfold

package archive

import (
	"starling/cluster"
	"starling/replica/report"
)

// otherwise does nothing but in the program that is built to try what is said of one that folds otherwise.
func otherwise(*cluster.State, *report.Folded) {}
