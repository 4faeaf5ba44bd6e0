package peers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms/rules"
)

func newRules(r *remote.Remote) *cobra.Command {
	command := &cobra.Command{
		Use:   "rules",
		Short: "Show by which version of the rules all peers fold, and up to which each knows them",
		Long: `Show by which version of the rules all peers fold the journal, and up to which version the program of each knows them. A
newer program keeps to the rules in force until they are raised, so that old and new ones work together. Once they are
raised, older programs stop when they meet that, with exit status 7, and their tasks go on until a newer one is there.`,
		Args: usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			answer, err := peer.Rules(ctx)
			if err != nil {
				return err
			}
			if err := r.Show(answer, func() *console.Table { return rulesTable(answer) }); err != nil || !r.ForPeople() {
				return err
			}
			adviseRules(r, answer)
			return nil
		}),
	}
	command.AddCommand(newRaise(r))
	return command
}

func rulesTable(answer *starlingv1.RulesResponse) *console.Table {
	t := console.NewTable("PEER", "KNOWS UP TO", "IN FORCE")
	for _, m := range answer.GetMembers() {
		newest := "-"
		if m.GetNewest() > 0 {
			newest = strconv.Itoa(int(m.GetNewest()))
		}
		t.Row(m.GetPeer(), newest, strconv.Itoa(int(answer.GetRules())))
	}
	return t
}

// behind counts the members whose programs know no newer rules than those in force.
func behind(answer *starlingv1.RulesResponse) (count int) {
	for _, m := range answer.GetMembers() {
		if m.GetNewest() <= answer.GetRules() {
			count++
		}
	}
	return count
}

// An agent that has just begun tells what its program knows within startedWithin. It is asked again after askAgain.
const (
	startedWithin = 5 * time.Second
	askAgain      = 200 * time.Millisecond
)

// knownByAll waits for that where some members know newer rules and others do not yet.
func knownByAll(ctx context.Context, peer *client.Client) (*starlingv1.RulesResponse, error) {
	for end := time.Now().Add(startedWithin); ; {
		answer, err := peer.Rules(ctx)
		if err != nil {
			return nil, err
		}
		if count := behind(answer); count == 0 || count == len(answer.GetMembers()) || time.Now().After(end) {
			return answer, nil // the fold says who is behind
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// adviseRules says what can be done about the rules.
func adviseRules(r *remote.Remote, answer *starlingv1.RulesResponse) {
	late := behind(answer)
	text := fmt.Sprintf("version %d of the rules is in force; the program of this peer knows up to %d", answer.GetRules(),
		answer.GetNewest())
	switch {
	case len(answer.GetMembers()) == 0:
	case late == 0:
		text += "; all know a newer one: starling rules raise"
	case late < len(answer.GetMembers()):
		text += fmt.Sprintf("; %d of %d peers know no newer one: install a newer program there first", late,
			len(answer.GetMembers()))
	}
	r.Hint("%s", text)
}

func newRaise(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "raise",
		Short: "Raise the rules by one version, for all peers at once",
		Long: `Raise the rules by one version, for all peers at once. It is refused unless the programs of all members know that version.
There is no way back: a program that does not know it will not run in this cluster any more.`,
		Args: usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			present, err := knownByAll(ctx, peer)
			if err != nil {
				return err
			}
			answer, err := peer.RaiseRules(ctx, rules.Number(present.GetRules()+1))
			if err != nil {
				return err
			}
			if !r.ForPeople() {
				return r.Show(answer, nil)
			}
			r.Hint("version %d of the rules is in force from entry %d on", present.GetRules()+1, answer.GetIndex()+1)
			return nil
		}),
	}
}
