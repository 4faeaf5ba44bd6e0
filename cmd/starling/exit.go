package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/wire"
)

// The exit statuses. "starling run -- PROGRAM" passes the program's own on instead of exitFailed.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotPlaced   = 3
	exitConflict    = 4
	exitUnreachable = 5
	exitDenied      = 6
	exitTimeout     = 124
	exitDetached    = 130
)

// exitMeanings lists what every status means.
var exitMeanings = []struct {
	status  int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed: the job failed, what was named does not exist, or something broke"},
	{exitUsage, "bad input: the command line, a job file or the configuration is wrong"},
	{exitNotPlaced, "not placed: before --timeout nothing of the job could be placed; \"starling why NAME\" tells the reasons"},
	{exitConflict, "conflict: it exists already, has ended, or was changed by somebody else"},
	{exitUnreachable, "unreachable: no peer answers at the address"},
	{exitDenied, "denied: the peer refuses to do that for you"},
	{exitTimeout, "timeout: --timeout was over before the end; the job goes on"},
	{exitDetached, "detached: Ctrl-C; the job goes on"},
}

// failure is an error with the exit status it leads to.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// fail returns an error that leads to the status.
func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// silent leads to a status without a word: whoever returns it has said what there is to say.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusOf returns the exit status that an error leads to.
func statusOf(err error) int {
	var chosen *failure
	var quiet silent
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &chosen):
		return chosen.status
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return statusOfFailure(err)
}

// statusOfFailure maps the codes of the API.
func statusOfFailure(err error) int {
	var answered *wire.Failure
	if !errors.As(err, &answered) {
		return exitFailed
	}
	switch answered.Code {
	case wire.Invalid:
		return exitUsage
	case wire.Conflict:
		return exitConflict
	case wire.Unavailable:
		return exitUnreachable
	case wire.Denied:
		return exitDenied
	}
	return exitFailed
}

// newExitCodes is a topic of help, not a command to run.
func newExitCodes() *cobra.Command {
	long := strings.Builder{}
	long.WriteString("Every command ends with one of these statuses:\n\n")
	for _, m := range exitMeanings {
		fmt.Fprintf(&long, "  %3d  %s\n", m.status, m.meaning)
	}
	long.WriteString("\n\"starling run -- PROGRAM\" ends with the program's own status, 128 and the signal's number if a signal ended\n" +
		"it; what goes wrong before the program has ended leads to a status of this table.\n")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean", Long: long.String()}
}
