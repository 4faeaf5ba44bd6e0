package users

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/rights"
)

func newCan(r *remote.Remote) *cobra.Command {
	why := false
	var verbs []string
	for _, v := range rights.Verbs() {
		verbs = append(verbs, strings.TrimSpace(v.Name+" "+v.Object))
	}
	command := &cobra.Command{
		Use:   "can USER VERB [OBJECT]",
		Short: "Tell whether a user may do something",
		Long: `Tell whether a user may do something, by the same rule by which requests are refused. Who is at a machine's socket is written
NAME@NODE. The exit status is 0 if that one may, and 6 if not.

What can be asked: ` + strings.Join(verbs, ", ") + ".",
		Example: `  starling can alice stop ml/train --why
  starling can root@a drain b`,
		Args: usage.Arguments(2, 3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, v := range rights.Verbs() {
				names = append(names, v.Name)
			}
			if len(args) != 1 {
				names = nil
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			answer, err := peer.Can(ctx, door.Question{User: args[0], Verb: args[1], Object: strings.Join(args[2:], "")})
			if err != nil {
				return err
			}
			return tell(r, answer, why)
		}),
	}
	command.Flags().BoolVar(&why, "why", false, "tell the reason as well")
	return command
}

// tell prints an answer, and makes a no the exit status.
func tell(r *remote.Remote, answer rights.Answer, why bool) error {
	word, end := "yes", error(nil)
	if !answer.May {
		word, end = "no", error(exit.Silent(exit.Denied))
	}
	if !r.ForPeople() {
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if err := r.PrintJSON(append(text, '\n')); err != nil {
			return err
		}
		return end
	}
	if why {
		word += ": " + answer.Why
	}
	fmt.Fprintln(r.Out, word)
	return end
}
