package main

import (
	"github.com/spf13/cobra"

	"starling/jobspec"
)

func newSchema(c *console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of job files",
		Long: `Print the JSON Schema (draft-07) of one document of a job file. Editors use it to complete and to check; what
it cannot say, "starling run" checks as well.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out.Write(jobspec.Schema())
			return err
		},
	}
}
