package jobs

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

// runOptions are the flags of "starling run".
type runOptions struct {
	detach  bool
	timeout time.Duration
	// against is the version that the file was made against; unless stated, the one that is there now.
	against usage.Version
}

// flags declares how a job is followed after a change.
func (o *runOptions) flags(command *cobra.Command) {
	command.Flags().BoolVarP(&o.detach, "detach", "d", false, "return when the change is submitted")
	command.Flags().DurationVar(&o.timeout, "timeout", 0,
		"stop following after this `DURATION`, such as 30s; the jobs go on")
}

func newRun(r *remote.Remote) *cobra.Command {
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
				return usage.Error(command, fmt.Errorf("starling run takes one FILE, got %q as well; a program goes behind --",
					args[1]))
			}
			return usage.Error(command, errors.New("starling run needs a FILE, or -- and a PROGRAM"))
		},
		RunE: func(command *cobra.Command, args []string) error {
			if command.ArgsLenAtDash() == 0 {
				return runProgram(command.Context(), r, args, options)
			}
			return runFile(command.Context(), r, args[0], options)
		},
	}
	options.flags(command)
	command.Flags().Var(&options.against, "against",
		"the `VERSION` that the file was made against, 0 for a new job (default: the present one)")
	return command
}

// detached says how to come back to a job that goes on.
func detached(r *remote.Remote, name string) error {
	r.Hint("\ndetached; %s goes on\n  come back: starling logs -f %s\n  stop it:   starling stop %s", name, name, name)
	return exit.Silent(exit.Detached)
}
