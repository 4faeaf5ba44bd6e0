//go:build plantedbug

package peer

import (
	"slices"

	"starling/command"
)

// plant panics when the job "planted-bug" is to be stopped. It is built so to try what follows a bug of the fold.
func plant(e *command.Entry) {
	if slices.ContainsFunc(e.Commands, func(one command.Command) bool {
		kill, ok := one.(*command.KillJob)
		return ok && kill.Job == "planted-bug"
	}) {
		panic("a planted bug")
	}
}
