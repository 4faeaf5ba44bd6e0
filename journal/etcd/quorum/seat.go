package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"starling/journal"
	"starling/journal/etcd"
)

const (
	// lookEvery is how often a machine with a member looks whether that leads, and, if so, at everything.
	lookEvery = 300 * time.Millisecond
	// lookAnyway is how often a machine looks at the members although it heard of no change.
	lookAnyway = 10 * time.Second
	// askMax bounds one question to the engine, changeMax one change of its members.
	askMax    = 2 * time.Second
	changeMax = 5 * time.Second
)

// run plays the machine's part until ctx ends.
func (n *Node) run(ctx context.Context) {
	hints := make(chan struct{}, 1)
	if n.config.External == nil {
		n.running.Go(func() { n.listen(ctx, hints) })
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if n.member != nil && n.hasStopped() && !n.resign() {
			return
		}
		if n.config.External == nil {
			n.part(ctx)
		}
		n.keepName(ctx)
		select {
		case <-tick.C:
		case <-hints:
			n.looked = time.Time{}
		case <-ctx.Done():
		}
	}
}

// part does what is this machine's now: it takes the way through a member that has its vote, follows the list of
// members, and decides about that if it is the leader's.
func (n *Node) part(ctx context.Context) {
	if n.member != nil && !n.journal.UsesMember() && n.member.Votes() {
		n.config.Log.Info("this node's member has its vote", "member", idText(n.member.ID()))
		n.journal.UseMember(n.member)
	}
	leads := n.member != nil && n.member.Leads()
	if leads || time.Since(n.looked) > lookAnyway {
		n.looked = time.Now()
		if err := n.look(ctx); err != nil && ctx.Err() == nil {
			n.config.Log.Warn("the quorum's members cannot be looked at", "error", err)
		}
	}
	if leads {
		n.steer(ctx)
	} else {
		n.steering = time.Time{}
	}
}

// listen hears of changes of the quorum. A hint that is missed only makes this machine later.
func (n *Node) listen(ctx context.Context, hints chan<- struct{}) {
	for ctx.Err() == nil {
		for range n.journal.Client().Watch(ctx, keyChanged) {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
		_ = pause(ctx, lookEvery) // ctx is asked again
	}
}

// keepName takes the machine's name again when an outage has ended its pulse.
func (n *Node) keepName(ctx context.Context) {
	if !n.claim.lost() {
		return
	}
	short, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	err := n.claim.take(short, 0)
	if errors.Is(err, journal.ErrPulseTaken) {
		n.config.Log.Error("another machine has taken this one's name while it could not be reached", "error", err)
	}
}

// look lets this machine follow the engine's list of members: it starts a member that was added for it, and remembers
// where all are.
func (n *Node) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeMax)
	defer cancel()
	list, err := n.journal.Client().MemberList(ctx)
	if err != nil {
		return err
	}
	urls := votersOf(list.Members)
	n.journal.SetEndpoints(urls)
	n.mu.Lock()
	err = n.known.remember(urls)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	mine := slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool {
		return n.config.Machine.Peer != "" && slices.Contains(m.PeerURLs, n.config.Machine.Peer)
	})
	if n.member == nil && mine >= 0 && list.Members[mine].Name == "" {
		return n.join(ctx, list.Members[mine].ID, list.Members)
	}
	return nil
}

// votersOf returns the client URLs of the members that answer clients.
func votersOf(members []*etcdserverpb.Member) []string {
	var urls []string
	for _, m := range members {
		if !m.IsLearner {
			urls = append(urls, m.ClientURLs...)
		}
	}
	slices.Sort(urls)
	return urls
}

// join starts the member that was added for this machine. That it is here is told first: a machine that runs without
// the member that it had is one that has lost its data.
func (n *Node) join(ctx context.Context, id uint64, members []*etcdserverpb.Member) error {
	shown := n.claim.shown
	shown.Member = id
	if err := n.claim.show(ctx, shown); err != nil {
		return err
	}
	cluster := map[string]string{}
	for _, m := range members {
		name := m.Name
		switch {
		case m.ID == id:
			name = n.config.Machine.Node
		case name == "":
			name = idText(m.ID)
		}
		cluster[name] = m.PeerURLs[0]
	}
	n.config.Log.Info("this node becomes a member of the quorum", "member", idText(id))
	return n.startMember(ctx, cluster)
}

// resign goes on as a client after the member has stopped because it was removed. It tells the owner of any other end.
func (n *Node) resign() bool {
	if !n.member.Removed() {
		n.lost <- errors.New("this node's etcd member has stopped")
		return false
	}
	n.config.Log.Info("this node is no member of the quorum any more", "member", idText(n.member.ID()))
	urls := n.known.except(n.config.Machine.Client)
	err := n.journal.UseClient(etcd.ClientConfig{Endpoints: urls, TLS: n.config.TLS})
	if err == nil {
		err = n.setAside()
	}
	if err != nil {
		n.lost <- fmt.Errorf("go on without a member: %w", err)
		return false
	}
	shown := n.claim.shown
	shown.Member = 0
	short, cancel := context.WithTimeout(context.Background(), askMax)
	defer cancel()
	if err := n.claim.show(short, shown); err != nil {
		n.config.Log.Warn("that this node has no member is not told yet", "error", err)
	}
	return true
}

func idText(id uint64) string { return fmt.Sprintf("%016x", id) }
