package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/usage"
)

// answerWithin bounds how long a peer may take to answer what needs no waiting.
const answerWithin = 30 * time.Second

// The output formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// remote is what a command that talks to a peer works with.
type remote struct {
	*console.Console
	// address is where the peer answers, format how answers are printed.
	address, format string
	documents       int
}

// flags declares the global flags.
func (r *remote) flags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&r.address, "address", "",
		"`HOST:PORT` of a peer's API, to ask (several: with commas) or to listen on; also STARLING_ADDRESS (default "+client.DefaultAddress+")")
	root.PersistentFlags().StringVarP(&r.format, "output", "o", formatTable, "print answers as `FORMAT`: table, json or yaml")
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		if r.format != formatTable && r.format != formatJSON && r.format != formatYAML {
			return usage.Error(command, fmt.Errorf("unknown output format %q: use table, json or yaml", r.format))
		}
		return nil
	}
	complete := cobra.FixedCompletions([]string{formatTable, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was declared above
	}
}

// dial returns a client of the peers at the address: the flag's, the environment's, or the default.
func (r *remote) dial() (*client.Client, error) {
	addresses, err := client.Addresses(cmp.Or(r.address, os.Getenv("STARLING_ADDRESS")))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	return client.New(addresses), nil
}

// answerContext bounds a request that needs no waiting.
func answerContext(command *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(command.Context(), answerWithin)
}
