package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/cmd/starling/exit"
)

// usageError adds to err where the right usage is told.
func usageError(command *cobra.Command, err error) error {
	return exit.Fail(exit.Usage, "%w\nhint: %s --help tells how it is used", err, command.CommandPath())
}

// noArguments refuses all arguments: of the root, because that is an unknown command.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if command.HasParent() {
		return usageError(command, fmt.Errorf("%s takes no arguments, got %q", command.CommandPath(), args[0]))
	}
	hint := ""
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usageError(command, fmt.Errorf("unknown command %q%s", args[0], hint))
}

// oneArgument wants exactly one argument, called by what it is.
func oneArgument(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError(command, fmt.Errorf("%s needs a %s", command.CommandPath(), what))
		}
		return atMostOne(what)(command, args)
	}
}

// atMostOne wants one argument or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError(command, fmt.Errorf("%s takes one %s, got %q as well", command.CommandPath(), what, args[1]))
		}
		return nil
	}
}
