// Package peers has the commands about the cluster as a whole: who its peers are, which of them shall be emptied, and
// what the journal says that they did.
package peers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/usage"
	"starling/terms"
)

// Commands returns "starling peers", "starling node", "starling quorum", "starling rules" and "starling journal".
func Commands(r *remote.Remote, copying *cobra.Command) []*cobra.Command {
	return []*cobra.Command{remote.Past(newRing(r)), newNode(r), newQuorum(r), remote.Past(newRules(r)),
		newJournal(r, copying)}
}

func newRing(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "peers",
		Short: "Show the ring: which peer watches which, what each gives, how far each has read",
		Args:  usage.NoArguments,
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, _ []string) error {
			answer, err := peer.AllPeers(ctx)
			if err != nil {
				return err
			}
			if err := r.Show(answer, func() *console.Table { return peerTable(answer) }); err != nil {
				return err
			}
			for _, p := range answer.GetPeers() {
				if isRefused(p) {
					r.Hint("warning: %s: %s", p.GetPeer(), p.GetDetail())
				}
			}
			return nil
		}),
	}
}

func peerTable(answer *starlingv1.ListPeersResponse) *console.Table {
	t := console.NewTable("PEER", "STATE", "WATCHES", "FREE CPU", "FREE MEMORY", "FREE DISK", "KEPT", "DEVICES", "RUNS",
		"INDEX", "LAG", "DIGEST", "ADDRESS")
	t.Spare = []string{"KEPT", "DIGEST", "ADDRESS", "FREE DISK", "LAG", "DEVICES", "INDEX", "WATCHES"}
	for _, p := range byName(answer) {
		name := cmp.Or(p.GetPeer(), p.GetNode())
		if p.GetPeer() != "" && p.GetPeer() == answer.GetSelf() {
			name += " *"
		}
		t.Row(name, stateOf(p), console.Dash(p.GetWatches()),
			part(p, terms.CPU), part(p, terms.Memory), part(p, terms.Disk), kept(p), devices(p),
			fmt.Sprint(p.GetAllocations()), position(p), lag(p), digest(p), console.Dash(p.GetAddress()))
	}
	return t
}

// byName returns the peers in the order of their nodes.
func byName(answer *starlingv1.ListPeersResponse) []*starlingv1.Peer {
	return slices.SortedFunc(slices.Values(answer.GetPeers()), func(a, b *starlingv1.Peer) int {
		return strings.Compare(a.GetNode(), b.GetNode())
	})
}

// stateOf tells how a node's peer stands, in a word.
func stateOf(p *starlingv1.Peer) string {
	switch isMember := p.GetState() == "member"; {
	case isRefused(p):
		return "refused"
	case isMember && p.GetAwayUntil() != nil:
		return "away"
	case isMember && !p.GetAlive():
		return "silent" // its pulse has ended, and its watcher has not written that down yet
	case isMember && p.GetDraining():
		return "draining"
	}
	return p.GetState()
}

// isRefused tells whether the peer is a member that gives nothing, because its offer is refused.
func isRefused(p *starlingv1.Peer) bool { return p.GetState() == "member" && p.GetDetail() != "" }

// part writes what is free of what there is.
func part(p *starlingv1.Peer, k terms.Kind) string {
	if p.GetCapacity() == nil {
		return "-"
	}
	return k.Round(wire.ResourcesOf(p.GetFree())[k]) + "/" + k.Round(wire.ResourcesOf(p.GetCapacity())[k])
}

// kept writes what is not free although nothing holds it: work that waits is to have it.
func kept(p *starlingv1.Peer) string {
	var all []string
	for k, amount := range wire.ResourcesOf(p.GetKept()) {
		if amount > 0 {
			all = append(all, terms.Kind(k).Round(amount)+" "+terms.Kind(k).String())
		}
	}
	return console.Dash(strings.Join(all, ", "))
}

// devices tells what else there is: "gpu=2 peers=4".
func devices(p *starlingv1.Peer) string {
	var all []string
	for _, d := range p.GetDevices() {
		all = append(all, fmt.Sprintf("%s=%d", d.GetKind(), d.GetCount()))
	}
	return console.Dash(strings.Join(all, " "))
}

func position(p *starlingv1.Peer) string {
	if p.GetJournalIndex() == 0 {
		return "-"
	}
	return fmt.Sprint(p.GetJournalIndex())
}

func lag(p *starlingv1.Peer) string {
	if p.GetJournalIndex() == 0 {
		return "-"
	}
	return fmt.Sprint(p.GetLag())
}

// digest shows the first half of a digest, and whether the answering peer had another at that index.
func digest(p *starlingv1.Peer) string {
	const digits = 8
	switch {
	case p.GetJournalIndex() == 0 || len(p.GetDigest()) < digits:
		return "-"
	case p.DigestAgrees != nil && !p.GetDigestAgrees():
		return p.GetDigest()[:digits] + " DIFFERS"
	}
	return p.GetDigest()[:digits]
}
