package agent

import (
	"github.com/spf13/cobra"

	"starling/cmd/starling/exit"
	"starling/cmd/starling/usage"
	"starling/driver/container"
	"starling/driver/process"
)

// superviseCommand is the subcommand that drivers start; it is no user's.
const superviseCommand = "supervise"

// newSupervise is the life of a supervisor, one for every task.
func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use: superviseCommand + " DIR", Hidden: true, Args: usage.OneArgument("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if status := process.Supervise(args[0], container.Mount); status != 0 {
				return exit.Silent(status)
			}
			return nil
		},
	}
}
