// Command starling is the whole program: the agent of a machine, a cluster for development in one process, and the
// tool by which people and programs talk to either.
//
// There is a package for each group of subcommands; here are the root, which puts them together, and the few that
// need neither a peer nor a journal. Data goes to stdout, progress and hints to stderr, and the exit status is one of
// the table in package exit.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"starling/cmd/starling/agent"
	"starling/cmd/starling/console"
	"starling/cmd/starling/doctor"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/jobs"
	"starling/cmd/starling/logs"
	"starling/cmd/starling/manual"
	"starling/cmd/starling/page"
	"starling/cmd/starling/past"
	"starling/cmd/starling/peers"
	"starling/cmd/starling/pools"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/simulation"
	"starling/cmd/starling/tasks"
	"starling/cmd/starling/usage"
	"starling/cmd/starling/users"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], console.Standard()))
}

// run executes the command line and returns the exit status. A panic of this goroutine becomes one line for the
// user, and a stack in a file for whoever repairs it.
func run(ctx context.Context, args []string, c *console.Console) (status int) {
	defer func() {
		if cause := recover(); cause != nil {
			c.Problem(fmt.Errorf("internal error: %v; please report it%s", cause, c.KeepStack(cause, debug.Stack())))
			status = exit.Failed
		}
	}()
	root := newRoot(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		c.Problem(err)
	}
	return exit.StatusOf(err)
}

// newRoot returns the command with all its subcommands.
func newRoot(c *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "starling",
		Short: "A cluster scheduler without a master",
		Long: `Starling runs batch jobs and services on a cluster without a master: every machine runs this program, reads the
same journal and does its own part of what it asks for.

Begin with "starling dev", and in another terminal "starling run -- echo hi".`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage.NoArguments,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return usage.Error(command, err) })
	root.SetHelpCommand(manual.NewHelp())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupCluster, Title: "The cluster:"},
		&cobra.Group{ID: groupPast, Title: "The past and the possible:"},
		&cobra.Group{ID: groupOther, Title: "Other:"})
	version, commit := programVersion()
	r := &remote.Remote{Console: c}
	r.Declare(root)
	for group, commands := range map[string][]*cobra.Command{
		groupWork: slices.Concat(jobs.Commands(r), tasks.Commands(r),
			[]*cobra.Command{logs.New(r), newInit(c), newSchema(c)}),
		groupCluster: slices.Concat(agent.Commands(r, version), peers.Commands(r, agent.NewJournalCopy(r)),
			users.Commands(r), []*cobra.Command{pools.New(r), page.New(r), doctor.New(r, version),
				doctor.Debug(r, version, commit)}),
		groupPast:  past.Commands(r, version),
		groupOther: append(manual.Topics(), simulation.New(r), newVersion(r), manual.NewPages(), exit.NewTopic()),
	} {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	root.InitDefaultCompletionCmd()
	return root
}

// The groups in which help lists the subcommands.
const (
	groupWork    = "work"
	groupCluster = "cluster"
	groupPast    = "past"
	groupOther   = "other"
)
