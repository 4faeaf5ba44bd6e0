package main

import "github.com/spf13/cobra"

// newSupervise is what the process driver starts for every task; nobody else has a use for it.
func newSupervise() *cobra.Command {
	return &cobra.Command{Use: "supervise", Hidden: true}
}
