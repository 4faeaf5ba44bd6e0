package quorum

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"starling/journal/etcd"
	"starling/journal/etcd/datadir"
)

// Config says what a machine's part in the quorum is.
type Config struct {
	// Machine is what this machine tells of itself; without the URLs of a member it never has one.
	Machine Machine
	// Dir holds the data of its member, File what it knows of the others.
	Dir, File string
	// Find returns the client URLs of the quorum's members, by asking machines of the cluster; nil lets a machine without
	// data begin a quorum of its own.
	Find func(context.Context) ([]string, error)
	// Certificates are for its member, TLS for itself as a client.
	Certificates etcd.Certificates
	TLS          *tls.Config
	// PulseTTL is how long a machine that is silent counts as one that runs, AwayMax how long a member may be away.
	PulseTTL, AwayMax time.Duration
	// QuotaBytes is how large the engine's file may become.
	QuotaBytes int64
	// EngineLog takes the engine's own lines.
	EngineLog io.Writer
	Log       *slog.Logger
	// Known tells which nodes the cluster knows no more, nil for none.
	Known Known
	// External is an etcd that others keep: this machine only has its name there, and no part in its quorum.
	External *etcd.ClientConfig
	// Waiting is told now and then where nobody answers, as long as the quorum is not found.
	Waiting func(urls []string, err error)
}

// Known tells which nodes the cluster knows no more, once there is somebody here who can tell.
type Known interface {
	// Gone lists those that were removed, and not admitted again.
	Gone() []string
	// Refuse tells whose a certificate is, and why it does not count any more, if it does not.
	Refuse(*x509.Certificate) (node string, err error)
}

// Node is a machine's part in the quorum.
type Node struct {
	config  Config
	journal *etcd.Journal
	claim   *claim
	known   *known

	mu     sync.Mutex
	member *etcd.Member // nil without one
	seen   View         // the last that could be read

	// Only run touches these: since when this machine decides, zero if it does not, the last step that was logged, and
	// when it looked last at the members and at their files.
	steering      time.Time
	said          string
	looked, cared time.Time

	// leaves is set before Close where the journal goes on elsewhere.
	leaves bool

	// careEvery and freeMin are the defaults, but for tests.
	careEvery time.Duration
	freeMin   int64

	cancel  context.CancelFunc
	running sync.WaitGroup
	lost    chan error // at most one
}

// Open finds the quorum, through the member whose data is here, as a client, or by founding it, and waits until it
// answers.
func Open(ctx context.Context, config Config) (*Node, error) {
	n := &Node{config: config, lost: make(chan error, 1), cancel: func() {},
		careEvery: careEveryDefault, freeMin: freeMinDefault}
	var err error
	if n.known, err = loadKnown(config.File); err != nil {
		return nil, err
	}
	if config.External != nil {
		return n, n.reach(ctx)
	}
	if datadir.HasMember(config.Dir) || config.Founds() {
		if err := n.startMember(ctx, nil); err != nil {
			return nil, err
		}
		if err := n.awaitMember(ctx); err != nil {
			return nil, errors.Join(err, n.closeMember())
		}
	}
	if n.member != nil {
		n.journal = n.member.Journal()
		err = n.keepAddress(ctx)
	} else {
		err = n.reach(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Founds tells whether Open would found a quorum: nothing here tells of one.
func (c *Config) Founds() bool {
	known, err := loadKnown(c.File)
	return err == nil && c.External == nil && c.Find == nil && len(known.Endpoints) == 0 && !datadir.HasMember(c.Dir)
}

// HasMember tells whether the data of a member is here, which Open starts.
func (c *Config) HasMember() bool { return datadir.HasMember(c.Dir) }

// HasLost tells whether this machine kept the journal when it ran last, and has nothing of its member now.
func (c *Config) HasLost() bool {
	known, err := loadKnown(c.File)
	return err == nil && slices.Contains(known.Endpoints, c.Machine.Client) && !c.HasMember()
}

// startMember starts the member: that whose data is here, one that the cluster of these members has added, or the only
// one of a new cluster.
func (n *Node) startMember(ctx context.Context, cluster map[string]string) error {
	if n.config.Machine.Client == "" {
		return fmt.Errorf("this node has a member of the quorum in %s, which needs etcd.listen to answer at", n.config.Dir)
	}
	for _, at := range []string{n.config.Machine.Peer, n.config.Machine.Client} {
		if err := canListen(at); err != nil {
			return err
		}
	}
	config := etcd.MemberConfig{
		Name: n.config.Machine.Node, DataDir: n.config.Dir, Log: n.config.EngineLog,
		ClientURL: n.config.Machine.Client, PeerURL: n.config.Machine.Peer, InitialCluster: cluster, Join: cluster != nil,
		Certificates: n.config.Certificates, QuotaBytes: n.config.QuotaBytes,
	}
	if n.config.Known != nil {
		config.Refuse = n.config.Known.Refuse
	}
	m, err := etcd.Start(ctx, config)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.member = m
	if err := n.known.rememberMember(n.config.Machine.Client, n.config.Machine.Peer); err != nil {
		n.config.Log.Warn("where this node's member answers is not kept", "error", err)
	}
	return nil
}

// awaitMember waits until the member finds its cluster. One that is of it no more is set aside.
func (n *Node) awaitMember(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, waitingEvery)
		err := n.member.Ready(short)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case n.hasStopped() && !n.member.Removed():
			return err
		case n.hasStopped() || n.isForgotten(ctx):
			n.config.Log.Warn("the quorum goes on without the member of this node: its data is set aside", "folder", n.config.Dir)
			return n.setAside()
		}
		n.config.Waiting(n.known.except(n.config.Machine.Client), err)
	}
}

// waitingEvery is how long to wait before saying for what, and then again.
const waitingEvery = 2 * time.Second

func (n *Node) hasStopped() bool {
	select {
	case <-n.member.Stopped():
		return true
	default:
		return false
	}
}

// isForgotten tells whether those who were members last list this node's member no more. Its own list may be older.
func (n *Node) isForgotten(ctx context.Context) bool {
	urls := n.known.except(n.config.Machine.Client)
	if len(urls) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, waitingEvery)
	defer cancel()
	j, err := etcd.Open(ctx, etcd.ClientConfig{Endpoints: urls, TLS: n.config.TLS})
	if err != nil {
		return false
	}
	defer j.Close()
	list, err := j.Client().MemberList(ctx)
	if err != nil {
		return false
	}
	for _, m := range list.Members {
		if m.ID == n.member.ID() {
			return false
		}
	}
	return true
}

// keepAddress tells the others where the member is now, if that has changed while it did not run.
func (n *Node) keepAddress(ctx context.Context) error {
	list, err := n.journal.Client().MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list the members of the quorum: %w", err)
	}
	for _, m := range list.Members {
		if m.ID == n.member.ID() && (len(m.PeerURLs) != 1 || m.PeerURLs[0] != n.config.Machine.Peer) {
			if _, err := n.journal.Client().MemberUpdate(ctx, m.ID, []string{n.config.Machine.Peer}); err != nil {
				return fmt.Errorf("tell the quorum that this node's member moves to %s: %w\nhint: or put etcd.peer back to %v",
					n.config.Machine.Peer, err, m.PeerURLs)
			}
		}
	}
	return nil
}

// reach reaches the engine as a client, again and again until that works: where the quorum was last, and where others
// say that it is, in turn.
func (n *Node) reach(ctx context.Context) error {
	for ask := false; ; ask = !ask {
		config, err := n.clientConfig(ctx, ask)
		if err == nil {
			short, cancel := context.WithTimeout(ctx, waitingEvery)
			n.journal, err = etcd.Open(short, config)
			cancel()
		}
		if err == nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		n.config.Waiting(config.Endpoints, err)
		if err := pause(ctx, claimPause); err != nil {
			return err
		}
	}
}

// clientConfig says how to reach the engine as a client.
func (n *Node) clientConfig(ctx context.Context, ask bool) (etcd.ClientConfig, error) {
	if n.config.External != nil {
		return *n.config.External, nil
	}
	config := etcd.ClientConfig{Endpoints: n.known.except(n.config.Machine.Client), TLS: n.config.TLS}
	if n.config.Find == nil || !ask && len(config.Endpoints) > 0 {
		return config, nil
	}
	found, err := n.config.Find(ctx)
	config.Endpoints = found
	return config, err
}

// Journal is the cluster's.
func (n *Node) Journal() *etcd.Journal { return n.journal }

// Lost tells when the member that runs here has ended although nobody wanted that.
func (n *Node) Lost() <-chan error { return n.lost }

// Begin takes the machine's name, and plays its part until Close. An error leaves everything as it was.
func (n *Node) Begin(ctx context.Context) error {
	n.claim = &claim{journal: n.journal.Below("machine/"), node: n.config.Machine.Node, ttl: n.config.PulseTTL}
	n.claim.shown = n.config.Machine
	if n.member != nil {
		n.claim.shown.Member = n.member.ID()
	}
	if err := n.claim.take(ctx, 2*n.config.PulseTTL); err != nil {
		return err
	}
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	n.running.Go(func() { n.run(ctx) })
	return nil
}

// Close ends the machine's part. What its member holds stays.
func (n *Node) Close() error {
	n.cancel()
	n.running.Wait()
	var errs []error
	if n.claim != nil {
		short, cancel := context.WithTimeout(context.Background(), goodbyeMax)
		_ = n.claim.end(short) // it ends by itself soon
		cancel()
		errs = append(errs, n.claim.journal.Close())
	}
	if n.journal != nil {
		errs = append(errs, n.journal.Close())
	}
	return errors.Join(append(errs, n.closeMember())...)
}

// Leave does what Close does where the journal goes on elsewhere. Nothing of the member runs any more then, and its
// data may be moved.
func (n *Node) Leave() error {
	n.leaves = true
	return n.Close()
}

// goodbyeMax is how long the member may take to end in good order. It waits for its clients and looks for a new leader,
// in vain if the others stop as well, and meanwhile the pulse of this node runs out.
const goodbyeMax = time.Second

// closeMember ends the member, and waits for it no longer than for goodbyeMax: the end of the process cuts it short
// then, as a crash would.
func (n *Node) closeMember() error {
	n.mu.Lock()
	m := n.member
	n.member = nil
	n.mu.Unlock()
	switch {
	case m == nil:
		return nil
	case n.leaves:
		return m.Leave()
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Close() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(goodbyeMax):
		return nil
	}
}

// setAside ends the member and keeps its data beside, until the next time.
func (n *Node) setAside() error {
	_ = n.member.Close() // how it ends matters no more
	n.mu.Lock()
	n.member = nil
	n.mu.Unlock()
	aside := n.config.Dir + oldSuffix
	if err := errors.Join(os.RemoveAll(aside), os.Rename(n.config.Dir, aside)); err != nil {
		return fmt.Errorf("set the data of this node's member aside: %w", err)
	}
	return nil
}
