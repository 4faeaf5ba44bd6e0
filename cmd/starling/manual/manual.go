// Package manual shows the documents as topics of help, and writes them and the help of all commands as man pages.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"starling/cmd/starling/exit"
	"starling/cmd/starling/usage"
	"starling/docs"
)

// Topics returns a topic of help for each document; they are not commands to run.
func Topics() (all []*cobra.Command) {
	for _, topic := range docs.Topics() {
		all = append(all, &cobra.Command{Use: topic.Name, Short: topic.Title, Long: plain(topic.Text)})
	}
	return all
}

// NewHelp returns "starling help".
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND | TOPIC]",
		Short:             "Show how a command is used, or a document",
		ValidArgsFunction: complete,
		RunE: func(command *cobra.Command, args []string) error {
			of, rest, err := command.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return exit.Fail(exit.Usage, "there is no command and no topic %q\nhint: starling help lists them", strings.Join(args, " "))
			}
			return of.Help()
		},
	}
}

// complete offers the commands and topics below what was typed.
func complete(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	of, _, err := command.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for _, below := range of.Commands() {
		if !below.Hidden {
			all = append(all, cobra.CompletionWithDesc(below.Name(), below.Short))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// plain is Markdown for a terminal, where blocks of code are set in instead of fenced.
func plain(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced && strings.TrimSpace(line) != "":
			out.WriteString("    " + line)
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// NewPages returns the hidden "starling man DIR", by which packages are made.
func NewPages() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write man pages of all commands and topics into a folder",
		Hidden: true,
		Args:   usage.OneArgument("DIR"),
		RunE: func(command *cobra.Command, args []string) error {
			return write(command.Root(), args[0])
		},
	}
}

// write writes pages that are the same for the same program, if SOURCE_DATE_EPOCH says when they are of.
func write(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Manual: "Starling", Source: "Starling"}
	if err := doc.GenManTree(root, header, folder); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	for _, topic := range docs.Topics() {
		title := fmt.Sprintf("%% STARLING-%s(7) %s\n\n", strings.ToUpper(topic.Name), topic.Title)
		page := md2man.Render([]byte(title + topic.Text))
		if err := os.WriteFile(filepath.Join(folder, "starling-"+topic.Name+".7"), page, 0o666); err != nil {
			return fmt.Errorf("write man pages: %w", err)
		}
	}
	return nil
}
