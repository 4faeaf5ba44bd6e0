package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/cmd/starling/console"
	"starling/cmd/starling/usage"
	"starling/jobspec"
)

func newSchema(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [pools]",
		Short: "Print the JSON Schema of job files, or of pools files",
		Long: `Print the JSON Schema (draft-07) of one document of a job file, or of a pools file. Editors use it to complete and to
check; what it cannot say, "starling run" and "starling pool apply" check as well.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "pools" {
				return usage.Error(command, fmt.Errorf("there is a schema of job files, and one of pools, not of %q", args[0]))
			}
			return usage.AtMostOne("kind of file")(command, args)
		},
		ValidArgs: []cobra.Completion{"pools"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := jobspec.Schema()
			if len(args) > 0 {
				schema = jobspec.PoolsSchema()
			}
			_, err := c.Out.Write(schema)
			return err
		},
	}
}
