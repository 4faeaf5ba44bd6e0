package main

import "github.com/spf13/cobra"

func newAgent(c *console) *cobra.Command {
	return &cobra.Command{Use: "agent", Short: "Run this machine's peer"}
}
