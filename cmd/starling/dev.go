package main

import "github.com/spf13/cobra"

func newDev(c *console) *cobra.Command {
	return &cobra.Command{Use: "dev", Short: "Start a cluster in this process, to try things"}
}
