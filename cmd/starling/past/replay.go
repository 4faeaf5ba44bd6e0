package past

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
	"starling/cmd/starling/console"
	"starling/cmd/starling/files"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/peer"
	"starling/replica/report"
	"starling/terms"
)

func newReplay(r *remote.Remote, version string) *cobra.Command {
	to, shown, serve := uint64(0), false, false
	command := &cobra.Command{
		Use:   "replay FILE",
		Short: "Fold the entries of a file again, and tell whether they lead to what they led to",
		Long: `Fold the entries of a file of "starling journal export" with this program, without a cluster, and compare the digest of the
value after each with that which the peer had that wrote the file. The first entry that leads to another value is told.

With --serve the value, and its past, is there to be asked: all commands that read work with the address that is printed, a socket
for this user alone.`,
		Example: "  starling replay entries.starling --print\n  starling replay entries.starling --serve --address unix:past.sock\n" +
			"  starling --address unix:past.sock --at 4711 why web",
		Args: usage.OneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			if to == 0 && command.Flags().Changed("to") {
				return usage.Error(command, errors.New("--to 0 is before the first entry: the first has index 1"))
			}
			if serve {
				return serveFile(command.Context(), r, args[0], version)
			}
			visit := func(_ *cluster.State, f *report.Folded) error {
				m := wire.Entry(f)
				return r.ShowNext(m, func() string { return remote.EntryWords(m) })
			}
			if !shown {
				visit = nil
			}
			all, err := files.Replay(args[0], terms.Index(to), visit)
			if err != nil {
				return err
			}
			r.Hint("entries %d to %d lead here to what they led to where they were written down: digest %016x", all.First+1,
				all.State.Index, all.State.Digest())
			if all.Open {
				r.Hint("%s has no end yet: its agent goes on to write to it, or was stopped there", args[0])
			}
			return nil
		},
	}
	command.Flags().Uint64Var(&to, "to", 0, "stop after the entry at `INDEX`")
	command.Flags().BoolVar(&shown, "print", false, "print the entries in words, with what they brought about")
	command.Flags().BoolVar(&serve, "serve", false, "let commands ask about the value and its past, at the socket of --address, or at one of its own")
	return command
}

func newUpgrade(r *remote.Remote, version string) *cobra.Command {
	plan, last := false, uint64(0)
	command := &cobra.Command{
		Use:   "upgrade --plan",
		Short: "Tell whether this program folds the latest entries as the peers do, before any of them is replaced by it",
		Long: `Run it with the program that is to replace that of the peers: it asks a peer for the latest entries in its archive, folds them
itself, and compares the digest after each. If they are the same, peers with either program go on together.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if !plan {
				return usage.Error(command, errors.New("only --plan is there: programs are replaced by whatever installs them"))
			}
			return planUpgrade(command.Context(), r, last, version)
		},
	}
	command.Flags().BoolVar(&plan, "plan", false, "fold the latest entries, and change nothing")
	command.Flags().Uint64Var(&last, "last", 10_000, "how many `ENTRIES`, at most")
	return command
}

// planUpgrade folds the last entries of a peer with this program.
func planUpgrade(ctx context.Context, r *remote.Remote, last uint64, version string) error {
	folder, err := os.MkdirTemp("", "starling-upgrade-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	client, err := r.Dial()
	if err != nil {
		return err
	}
	info, err := client.Info(ctx)
	if err != nil {
		return err
	}
	path := folder + "/entries"
	if _, err := files.ExportTo(ctx, client, &starlingv1.ExportRequest{Last: last}, path); err != nil {
		return err
	}
	all, err := files.Replay(path, 0, nil)
	if err != nil {
		return fmt.Errorf("%w\nhint: replace no peer by this program; \"starling journal export\" writes what is needed to report it", err)
	}
	f := folded{uint64(all.First) + 1, uint64(all.State.Index), fmt.Sprintf("%016x", all.State.Digest()), info.GetPeer(),
		info.GetVersion(), info.GetRules(), version, uint32(peer.RulesNewest)}
	return r.ShowData(f, func() error {
		fmt.Fprintf(r.Out, "entries %d to %d lead to the same value here and at %s: digest %s\n", f.First, f.Last, f.Peer, f.Digest)
		t := console.NewTable("PROGRAM", "VERSION", "RULES")
		t.Row("of "+f.Peer, f.PeerVersion, fmt.Sprintf("%d in force", f.PeerRules))
		t.Row("this one", f.Version, fmt.Sprintf("knows up to %d", f.RulesNewest))
		return r.Tables(t)
	})
}

// folded is what "upgrade --plan" found to be the same.
type folded struct {
	First       uint64 `json:"first,string"`
	Last        uint64 `json:"last,string"`
	Digest      string `json:"digest"`
	Peer        string `json:"peer"`
	PeerVersion string `json:"peer_version"`
	PeerRules   uint32 `json:"peer_rules"`
	Version     string `json:"version"`
	RulesNewest uint32 `json:"rules_newest"`
}
