package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/cmd/starling/console"
)

var rewrite = flag.Bool("rewrite", false, "write the document again")

const referenceHead = `# Commands

Every command and its flags, as ` + "`starling COMMAND --help`" + ` tells them. All take ` + "`--address`, `--output`" + ` (table, wide,
json, yaml), and those that only read take ` + "`--at`" + ` for a moment of the past. ` + "`starling help exit-codes`" + ` lists the exit
statuses. Flags that are [settings of the agent](configuration.md) are not listed again.
`

// TestReference keeps docs/commands.md as the commands say; -rewrite writes it.
func TestReference(t *testing.T) {
	const file = "../../docs/commands.md"
	var want bytes.Buffer
	want.WriteString(referenceHead)
	root := newRoot(&console.Console{Out: &want, Err: &want, In: strings.NewReader("")})
	agent, _, err := root.Find([]string{"agent"})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range root.Groups() {
		for _, command := range root.Commands() {
			if command.GroupID == group.ID && command.Name() != "help" {
				writeCommand(&want, command, agent)
			}
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the commands: run go test ./cmd/starling -run TestReference -rewrite", file)
	}
}

// writeCommand writes a command and those below it. Settings are the flags of agent, which has no others.
func writeCommand(b *bytes.Buffer, command, agent *cobra.Command) {
	if !command.IsAvailableCommand() {
		return
	}
	if !command.HasSubCommands() || len(command.Long) > 0 {
		fmt.Fprintf(b, "\n## `%s`\n\n%s.\n\n", command.CommandPath(), command.Short)
		fmt.Fprintf(b, "```text\n%s\n", command.UseLine())
		if command.Long != "" && command.Parent().Name() != "completion" {
			fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(command.Long))
		}
		if command.Example != "" {
			fmt.Fprintf(b, "\n%s\n", command.Example)
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		command.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name != "config" && command.Flag("etcd-listen") != nil && agent.Flag(f.Name) != nil {
				return
			}
			flags.AddFlag(f)
		})
		if flags.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s", flags.FlagUsagesWrapped(120))
		}
		b.WriteString("```\n")
	}
	if command.Name() == "completion" {
		return
	}
	for _, below := range command.Commands() {
		writeCommand(b, below, agent)
	}
}
