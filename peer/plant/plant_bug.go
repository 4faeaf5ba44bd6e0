//go:build plantedbug

// Package plant is where a program that is built to try it has a bug in its fold.
package plant

import (
	"slices"

	"starling/command"
)

// Bug panics when the job "planted-bug" is to be stopped. It is built so to try what follows a bug of the fold.
func Bug(e *command.Entry) {
	if slices.ContainsFunc(e.Commands, func(one command.Command) bool {
		kill, ok := command.Plain(one).(*command.KillJob)
		return ok && kill.Job == "planted-bug"
	}) {
		panic("a planted bug")
	}
}
