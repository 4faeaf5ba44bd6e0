package peers

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newJournal(r *remote.Remote) *cobra.Command {
	return usage.Group("journal", "Read what happened", newJournalTail(r))
}

func newJournalTail(r *remote.Remote) *cobra.Command {
	question := &starlingv1.TailJournalRequest{}
	command := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest entries in words, with what they brought about",
		Args:  usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if question.GetFrom() > 0 && !command.Flags().Changed("last") {
				question.Last = 0
			}
			return tailJournal(r, command, question)
		},
	}
	command.Flags().BoolVarP(&question.Follow, "follow", "f", false, "go on with every new entry")
	command.Flags().Uint64Var(&question.From, "from", 0, "begin with the entry at `INDEX`")
	command.Flags().Uint32VarP(&question.Last, "last", "n", 20,
		"begin with the newest `N` entries, 0 for all that the peer remembers")
	return command
}

func tailJournal(r *remote.Remote, command *cobra.Command, question *starlingv1.TailJournalRequest) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	return peer.TailJournal(command.Context(), question, func(answer *starlingv1.TailJournalResponse) error {
		if answer.GetEntry() == nil {
			r.Hint("the peer remembers entries from %d on", answer.GetOldestIndex())
			return nil
		}
		return r.ShowNext(answer.GetEntry(), func() string { return entryWords(answer.GetEntry()) })
	})
}

// entryWords tells an entry to people: a line of its own, one per command, one per effect.
func entryWords(e *starlingv1.JournalEntry) string {
	text := strings.Builder{}
	fmt.Fprintf(&text, "%d  %s  %s\n", e.GetIndex(), e.GetTime().AsTime().Local().Format("15:04:05.000"),
		console.Dash(e.GetWriter()))
	if e.GetDropped() != "" {
		fmt.Fprintf(&text, "    dropped: %s\n", e.GetDropped())
	}
	for _, c := range e.GetCommands() {
		fmt.Fprintf(&text, "    %s\n", c.GetText())
		if c.GetRefusal() != "" {
			fmt.Fprintf(&text, "      refused (%s): %s\n", c.GetRefusalCode(), c.GetRefusal())
		}
	}
	for _, effect := range e.GetEffects() {
		fmt.Fprintf(&text, "      → %s\n", effect.GetText())
	}
	return text.String()
}
