//go:build otherfold

package archive

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/replica/report"
)

// otherwise makes another value of an entry that submits the job "folded-otherwise". It is built so to try what is said
// of a program that folds otherwise.
func otherwise(s *cluster.State, f *report.Folded) {
	if f.Entry != nil && slices.ContainsFunc(f.Entry.Commands, func(one command.Command) bool {
		submit, ok := command.Plain(one).(*command.SubmitJob)
		return ok && submit.Spec.Name == "folded-otherwise"
	}) {
		s.LastJob++
		f.Digest = s.Digest()
	}
}
