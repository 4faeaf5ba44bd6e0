package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// runOptions are the flags of "starling run".
type runOptions struct {
	detach  bool
	timeout time.Duration
	// against is the version that the file was made against; unless stated, the one that is there now.
	against stated
}

// stated is a number that a flag may state.
type stated struct {
	number uint32
	given  bool
}

// Set implements pflag.Value.
func (s *stated) Set(text string) error {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return errors.New("must be a version, or 0 for none")
	}
	*s = stated{uint32(number), true}
	return nil
}

// String implements pflag.Value.
func (s *stated) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatUint(uint64(s.number), 10)
}

// Type implements pflag.Value.
func (s *stated) Type() string { return "version" }

// flags declares how a job is followed after a change.
func (o *runOptions) flags(command *cobra.Command) {
	command.Flags().BoolVarP(&o.detach, "detach", "d", false, "return when the change is submitted")
	command.Flags().DurationVar(&o.timeout, "timeout", 0, "stop following after this `DURATION`, such as 30s; the jobs go on")
}

func newRun(r *remote) *cobra.Command {
	options := runOptions{}
	command := &cobra.Command{
		Use:   "run FILE.yaml | -- PROGRAM [ARGUMENT...]",
		Short: "Run the jobs of a file, or one program",
		Long: `Run the jobs of a file, or with "--" one program.

A file (- for standard input) is checked first; then each of its jobs is submitted, or updated if it exists, and
followed until it runs, or has ended if it is a batch job. What waits for more than a few seconds is explained.

A change is made against the version that the job has now, or the one that --against states; if somebody else has
changed the job meanwhile, nothing is done. "starling plan FILE" tells before what would happen.

A program runs once, somewhere. Its output is shown as it comes, and its exit status becomes that of this command.

Ctrl-C detaches: the jobs go on.`,
		Example: "  starling run web.yaml\n  starling run -- sh -c 'echo hi; hostname'",
		Args: func(command *cobra.Command, args []string) error {
			dashed := command.ArgsLenAtDash()
			switch {
			case dashed == 0 && len(args) > 0, dashed < 0 && len(args) == 1:
				return nil
			case dashed < 0 && len(args) > 1:
				return usageError(command, fmt.Errorf("starling run takes one FILE, got %q as well; a program goes behind --", args[1]))
			}
			return usageError(command, errors.New("starling run needs a FILE, or -- and a PROGRAM"))
		},
		RunE: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() == 0 {
				return r.runProgram(command.Context(), args, options)
			}
			return r.runFile(command.Context(), args[0], options)
		},
	}
	options.flags(command)
	command.Flags().Var(&options.against, "against", "the `VERSION` that the file was made against, 0 for a new job (default: the present one)")
	return command
}

// attached returns a context that ends with the first Ctrl-C or SIGTERM, and with the timeout if there is one; the
// second signal ends the process as usual. interrupted tells whether it was a signal.
func attached(ctx context.Context, timeout time.Duration) (following context.Context, interrupted func() bool, release func()) {
	following, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	signals := following
	context.AfterFunc(signals, stop)
	cancel := stop
	if timeout > 0 {
		following, cancel = context.WithTimeout(following, timeout)
	}
	return following, func() bool { return signals.Err() != nil && ctx.Err() == nil }, func() { cancel(); stop() }
}

// detached says how to come back to a job that goes on.
func (r *remote) detached(name string) error {
	r.hint("\ndetached; %s goes on\n  come back: starling logs -f %s\n  stop it:   starling stop %s", name, name, name)
	return silent{exitDetached}
}
