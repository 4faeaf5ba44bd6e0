// Package usage says what a command line may hold, and what is wrong with one that holds anything else.
package usage

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"starling/cmd/starling/exit"
)

// What the library of flags says of numbers, and of durations, in the words of Go.
var (
	parsing = regexp.MustCompile(`strconv\.Parse\w+: parsing .*$`)
	lasting = regexp.MustCompile(`time: (missing unit in|unknown unit|invalid) .*$`)
)

// Error adds to err where the right usage is told.
func Error(command *cobra.Command, err error) error {
	text := parsing.ReplaceAllString(err.Error(), "must be a number")
	if text = lasting.ReplaceAllString(text, "must be a time with its unit, such as 3s"); text != err.Error() {
		err = errors.New(text)
	}
	return exit.Fail(exit.Usage, "%w\nhint: %s --help tells how it is used", err, command.CommandPath())
}

// Group returns a command that only has others below it.
func Group(use, short string, below ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, Args: NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() }}
	group.AddCommand(below...)
	return group
}

// NoArguments refuses all arguments: of the root, because that is an unknown command.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if command.HasParent() {
		return Error(command, fmt.Errorf("%s takes no arguments, got %q", command.CommandPath(), args[0]))
	}
	hint := ""
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return Error(command, fmt.Errorf("unknown command %q%s", args[0], hint))
}

// OneArgument wants exactly one argument, called by what it is.
func OneArgument(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return Error(command, fmt.Errorf("%s needs a %s", command.CommandPath(), what))
		}
		return AtMostOne(what)(command, args)
	}
}

// Arguments wants as many arguments as the line of the command's use says.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return Error(command, fmt.Errorf("write %s: got %d arguments", command.UseLine(), len(args)))
		}
		return nil
	}
}

// AtMostOne wants one argument or none.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Error(command, fmt.Errorf("%s takes one %s, got %q as well", command.CommandPath(), what, args[1]))
		}
		return nil
	}
}
