package move

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"starling/driver/fake"
	"starling/journal"
	"starling/journal/memory"
	"starling/peer"
	"starling/peer/identity"
	"starling/terms"
)

// flock is peers of a cluster, which remember which life they lead when they start again with another journal.
type flock struct {
	*testing.T
	ids   map[terms.NodeName]*identity.Memory
	peers map[terms.NodeName]*peer.Peer
}

// newFlock starts peers on nodes, with a journal.
func newFlock(t *testing.T, j *memory.Journal, nodes ...terms.NodeName) *flock {
	t.Helper()
	f := &flock{T: t, ids: map[terms.NodeName]*identity.Memory{}, peers: map[terms.NodeName]*peer.Peer{}}
	for _, node := range nodes {
		f.ids[node] = &identity.Memory{}
	}
	f.must(ignore(j.Cluster(t.Context(), "flock")))
	f.start(j)
	t.Cleanup(f.stop)
	return f
}

// start starts all peers with a journal, and waits until each is a member.
func (f *flock) start(j *memory.Journal) {
	f.Helper()
	for node, id := range f.ids {
		f.peers[node] = peer.Start(context.WithoutCancel(f.Context()), peer.Config{
			Node: node, Journal: j.Open(), Identity: id, Driver: fake.Open(fake.NewMachine(nil)), PulseTTL: 30 * time.Second,
			Offer: terms.Offer{Address: string(node), PortFirst: 20000, PortLast: 20100, Rules: peer.RulesNewest},
			Log:   slog.New(slog.DiscardHandler), Limits: terms.DefaultLimits(),
		})
	}
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	for _, p := range f.peers {
		f.must(p.Ready(ctx))
	}
}

// stop ends the peers. Their pulses live until their time is over.
func (f *flock) stop() {
	for _, p := range f.peers {
		p.Stop()
	}
	clear(f.peers)
}

// lives are the incarnations that the peers lead.
func (f *flock) lives() map[terms.NodeName]terms.PeerID {
	all := map[terms.NodeName]terms.PeerID{}
	for node, p := range f.peers {
		all[node] = p.Self()
	}
	return all
}

// wantLives wants that all peers lead the lives that they led before.
func (f *flock) wantLives(want map[terms.NodeName]terms.PeerID) {
	f.Helper()
	if got := f.lives(); !maps.Equal(got, want) {
		f.Errorf("the lives are %v, want %v", got, want)
	}
}

func (f *flock) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// ignore leaves the error alone of a result.
func ignore(_ any, err error) error { return err }

// moveOf is a move of the flock's journal.
func (f *flock) moveOf(from, to journal.Journal) *Move {
	return &Move{From: from, To: to, Cluster: "flock", Place: "there", Limits: terms.DefaultLimits(), Pulse: time.Minute,
		Begun: func(context.Context, terms.Index) error { return nil }, Tell: f.Logf}
}
