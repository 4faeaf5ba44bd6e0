// Package exit holds the statuses with which the program ends, and the errors that lead to them.
package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/wire"
	"starling/peer"
)

// The exit statuses. "starling run -- PROGRAM" and "starling exec" pass the program's own on instead of Failed.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	NotPlaced   = 3
	Conflict    = 4
	Unreachable = 5
	Denied      = 6
	Outdated    = 7
	Unknown     = 8
	Timeout     = 124
	Detached    = 130
)

// meanings lists what every status means.
var meanings = []struct {
	status  int
	meaning string
}{
	{OK, "done"},
	{Failed, "failed: the job failed, what was named does not exist, or something broke"},
	{Usage, "bad input: the command line, a job file or the configuration is wrong"},
	{NotPlaced, "not placed: before --timeout nothing of the job could be placed; \"starling why NAME\" tells the reasons"},
	{Conflict, "conflict: it exists already, has ended, or was changed by another writer"},
	{Unreachable, "unreachable: no peer answers at the address, or a registry or a journal's engine does not answer"},
	{Denied, "denied: the peer refuses to do that for you"},
	{Outdated, "outdated: the cluster's rules are newer than this program, or its journal is older than any release"},
	{Unknown, "unknown: it may have been done, or may still be; --request-id asks again, and does nothing twice"},
	{Timeout, "timeout: --timeout was over before the end; the job goes on"},
	{Detached, "detached: Ctrl-C; the job goes on"},
}

// failure is an error with the exit status it leads to.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// Fail returns an error that leads to the status.
func Fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// Silent leads to a status without a word: whoever returns it has said what there is to say.
type Silent int

// Error implements error.
func (s Silent) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// StatusOf returns the exit status that an error leads to.
func StatusOf(err error) int {
	var chosen *failure
	var quiet Silent
	switch {
	case err == nil:
		return OK
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &chosen):
		return chosen.status
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, peer.ErrProgram):
		return Outdated
	}
	return statusOfFailure(err)
}

// statusOfFailure maps the codes of the API.
func statusOfFailure(err error) int {
	var answered *wire.Failure
	if !errors.As(err, &answered) {
		return Failed
	}
	switch answered.Code {
	case wire.Invalid:
		return Usage
	case wire.Conflict:
		return Conflict
	case wire.Unavailable:
		return Unreachable
	case wire.Unknown:
		return Unknown
	case wire.Denied:
		return Denied
	}
	return Failed
}

// NewTopic returns the topic of help that lists the statuses; it is not a command to run.
func NewTopic() *cobra.Command {
	long := strings.Builder{}
	long.WriteString("Every command ends with one of these statuses:\n\n")
	for _, m := range meanings {
		fmt.Fprintf(&long, "  %3d  %s\n", m.status, m.meaning)
	}
	long.WriteString("\n\"starling run -- PROGRAM\" and \"starling exec\" end with the program's own status, 128 and the signal's number if a\n" +
		"signal ended it; what goes wrong before the program has ended leads to a status of this table.\n" +
		"\"starling plan\" ends with 1 if something would change, and with 2 for what leads to 1 elsewhere.\n")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean", Long: long.String()}
}
