package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/usage"
	"starling/examples"
)

func newInit(c *console.Console) *cobra.Command {
	force := false
	command := &cobra.Command{
		Use:   "init [DIR | NAME]",
		Short: "Write commented example files: jobs, and a tree of pools",
		Long: `Write commented example files: jobs, all of which run as they are, and a tree of pools. They go into the present folder,
or into DIR (which DIR/ makes), or only the one called NAME. Files that exist are left alone.`,
		Example: "  starling init\n  starling init examples/\n  starling init hello",
		Args:    usage.AtMostOne("DIR or NAME"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return exampleNames(), cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			argument := append(args, ".")[0]
			folder, files := choose(argument)
			if _, err := os.Stat(folder); err != nil && !strings.HasSuffix(argument, "/") {
				return exit.Fail(exit.Usage, "there is no example %s and no such folder: starling init %s/ makes the folder for all "+
					"of them\nexamples: %s", argument, argument, strings.Join(exampleNames(), ", "))
			}
			return writeExamples(c, folder, files, force)
		},
	}
	command.Flags().BoolVar(&force, "force", false, "write over files that exist")
	return command
}

func exampleNames() (names []string) {
	for _, example := range allExamples() {
		names = append(names, strings.TrimSuffix(example.Name, ".yaml"))
	}
	return names
}

// allExamples returns the job files, the first to be run first, and then the pools file.
func allExamples() []examples.File { return append(examples.Files(), examples.Pools()) }

// choose returns the examples that an argument asks for, and the folder they go into.
func choose(argument string) (folder string, files []examples.File) {
	all := allExamples()
	one := slices.IndexFunc(all, func(e examples.File) bool {
		return e.Name == argument || strings.TrimSuffix(e.Name, ".yaml") == argument
	})
	if one >= 0 {
		return ".", all[one : one+1]
	}
	return argument, all
}

func writeExamples(c *console.Console, folder string, files []examples.File, force bool) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	for _, example := range files {
		path := filepath.Join(folder, example.Name)
		if !force {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				return exit.Fail(exit.Conflict, "%s exists already; nothing was written\nhint: --force writes over it", path)
			}
		}
	}
	for _, example := range files {
		path := filepath.Join(folder, example.Name)
		if err := os.WriteFile(path, example.Data, 0o666); err != nil {
			return fmt.Errorf("write the example: %w", err)
		}
		fmt.Fprintln(c.Out, path)
	}
	how := "run one with: starling run %s"
	if files[0].Name == examples.Pools().Name {
		how = "make it the tree of pools with: starling pool apply %s"
	}
	c.Hint(how, filepath.Join(folder, files[0].Name))
	return nil
}
