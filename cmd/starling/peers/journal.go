package peers

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
)

func newJournal(r *remote.Remote, copying *cobra.Command) *cobra.Command {
	return usage.Group("journal", "Read what happened, write it into a file, find where a peer parted, or move it to another engine", newJournalTail(r), newJournalExport(r),
		newJournalBisect(r), copying)
}

func newJournalTail(r *remote.Remote) *cobra.Command {
	question, by := &starlingv1.TailJournalRequest{}, ""
	command := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest entries in words, with what they brought about",
		Args:  usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if (question.GetFrom() > 0 || by != "") && !command.Flags().Changed("last") {
				question.Last = 0
			}
			return tailJournal(r, command, question, by)
		},
	}
	command.Flags().StringVar(&by, "by", "", "only what a `USER` asked for, of all that the peer remembers")
	command.Flags().BoolVarP(&question.Follow, "follow", "f", false, "go on with every new entry")
	command.Flags().Uint64Var(&question.From, "from", 0, "begin with the entry at `INDEX`")
	command.Flags().Uint32VarP(&question.Last, "last", "n", 20,
		"begin with the newest `N` entries, 0 for all that the peer remembers")
	return command
}

func newJournalExport(r *remote.Remote) *cobra.Command {
	question := &starlingv1.ExportRequest{}
	command := &cobra.Command{
		Use:   "export FILE",
		Short: "Write entries, and the value before them, into a file for \"starling replay\"",
		Long: `Write entries from the archive of the peer into a file, with the value before them and the digest after each: all from which
none is missing, or those that the flags say. "starling replay" folds them again. The file holds all that jobs and pools
state, and so whatever secret somebody has written into them.`,
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			peer, err := r.Dial()
			if err != nil {
				return err
			}
			for text, into := range map[string]*string{"from": &question.From, "to": &question.To} {
				if *into == "" {
					continue
				}
				if *into, _, err = remote.Moment(*into, time.Now()); err != nil {
					return usage.Error(command, fmt.Errorf("--%s %w", text, err))
				}
			}
			head, err := files.ExportTo(command.Context(), peer, question, args[0])
			if err != nil {
				return err
			}
			r.Hint("%s holds the value at index %d and the entries behind it up to %d: starling replay %[1]s", args[0],
				head.GetFrom(), head.GetTo())
			return r.ShowData(files.Exported{File: args[0], From: head.GetFrom(), To: head.GetTo()}, func() error { return nil })
		},
	}
	command.Flags().StringVar(&question.From, "from", "", "begin with the value at a `MOMENT` such as 4711, 14:30 or -1h")
	command.Flags().StringVar(&question.To, "to", "", "end with the last entry at a `MOMENT`")
	command.Flags().Uint64Var(&question.Last, "last", 0, "no more than the last `N` entries")
	return command
}

// tailJournal prints entries, of one user's requests alone unless by is empty.
func tailJournal(r *remote.Remote, command *cobra.Command, question *starlingv1.TailJournalRequest, by string) error {
	peer, err := r.Dial()
	if err != nil {
		return err
	}
	seen := false
	err = peer.TailJournal(command.Context(), question, func(answer *starlingv1.TailJournalResponse) error {
		seen = true
		if answer.GetEntry() == nil {
			r.Hint("the peer remembers entries from %d on", answer.GetOldestIndex())
			return nil
		}
		asked := func(c *starlingv1.CommandWords) bool { return c.GetBy() == by }
		if by != "" && !slices.ContainsFunc(answer.GetEntry().GetCommands(), asked) {
			return nil
		}
		return r.ShowNext(answer.GetEntry(), func() string { return remote.EntryWords(answer.GetEntry()) })
	})
	if err != nil || seen {
		return err
	}
	info, err := peer.Info(command.Context())
	if err == nil && question.GetFrom() > info.GetIndex() {
		err = fmt.Errorf("index %d is in the future: the newest that this peer has folded is %d", question.GetFrom(), info.GetIndex())
	}
	return err
}
