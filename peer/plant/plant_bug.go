//go:build plantedbug

// Package plant is where a program that is built to try it has bugs in its fold.
package plant

import (
	"slices"

	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// Bug panics when the job "planted-bug" is to be stopped. When the job "wrong-value" is submitted it changes the value
// of a peer that lives, and not of one that only reads the journal, as a fault of the memory would. When the job
// "other-fold" is submitted it does so in any case, as another program would. It is built so to try what follows.
func Bug(self terms.PeerID, s *cluster.State, e *command.Entry) {
	if slices.ContainsFunc(e.Commands, func(one command.Command) bool {
		kill, ok := command.Plain(one).(*command.KillJob)
		return ok && kill.Job == "planted-bug"
	}) {
		panic("a planted bug")
	}
	submits := func(name terms.JobName) bool {
		return slices.ContainsFunc(e.Commands, func(one command.Command) bool {
			submit, ok := command.Plain(one).(*command.SubmitJob)
			return ok && submit.Spec.Name == name
		})
	}
	if submits("other-fold") || self != "" && submits("wrong-value") {
		s.Holds += 1000
	}
}
