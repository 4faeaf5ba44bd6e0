// Package agent has the commands that run peers in this process: that of one machine, or a whole cluster to try
// things.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"starling/api/door"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/host"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
	"starling/journal"
	"starling/journal/etcd"
	"starling/secret"
	"starling/terms"
	"starling/trust"
)

// agent is the peer of one machine.
type agent struct {
	*console.Console
	version string
	config  *settings.Agent
	folder  *host.Folder
	log     *slog.Logger
	keys    *trust.Keys
	door    *door.Door
	journal journal.Journal
	member  *etcd.Member
	host    *host.Host
}

// Commands returns "starling agent", "starling dev", and the hidden one that drivers start. The version is that of
// this program.
func Commands(r *remote.Remote, version string) []*cobra.Command {
	return []*cobra.Command{newAgent(r, version), newDev(r, version), newSupervise()}
}

func newAgent(r *remote.Remote, version string) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "agent",
		Short: "Run this machine's peer",
		Long: `Run this machine's peer. The first machines, one or three of a static list, form the quorum that keeps the
journal; all others join as its clients. When the agent stops its tasks go on, and it finds them again when it is
back before its pulse has ended.

Every setting is a key of the YAML file, a variable STARLING_... and a flag; a flag wins over a variable, that over
the file, and that over the default. "etcd.members" in the file is --etcd-members and STARLING_ETCD_MEMBERS.

A file for the first of three machines:

  node: a
  address: 10.0.0.1:7460
  etcd:
    members: {a: "https://10.0.0.1:2380", b: "https://10.0.0.2:2380", c: "https://10.0.0.3:2380"}
    listen: https://10.0.0.1:2379      # other nodes have  endpoints: ["https://10.0.0.1:2379", ...]  instead
  secret_file: /etc/starling/cluster.secret
  attributes: {zone: cellar}

The first node of etcd.members, by name, makes the cluster's certificate authority when it starts for the first time.
Every other machine joins by the line that "starling token create" prints there, with --join; it needs it once. Between
machines there is mutual TLS and nothing else; users of the machine are asked for nothing, see "starling user --help".

Jobs with the plugins ssh and mpi need the cluster's secret, a file that is the same on all nodes and for its owner alone. Make
it once and copy it; without it, or with another than most nodes have, only instances of such jobs fail on a node, and say so.
The node's attribute "secret" tells by eight digits which one it has, and nothing else of it:

  ` + secret.HowToMake("cluster.secret"),
		Example: `  starling agent --node a --data a.data --etcd-members a=https://127.0.0.1:2380
  starling agent --config /etc/starling/agent.yaml`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := settings.Read(command, cmp.Or(file, os.Getenv("STARLING_CONFIG")))
			if err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			return (&agent{Console: r.Console, version: version, config: config}).run(command.Context())
		},
	}
	command.Flags().StringVar(&file, "config", "", "read settings from a YAML `FILE`; also STARLING_CONFIG")
	settings.Declare(command)
	return command
}

// run starts the peer, waits for a signal, and stops it.
func (a *agent) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := a.start(ctx)
	switch {
	case ctx.Err() != nil:
		err = nil
	case err == nil:
		if odd := a.host.OddSecret(ctx); odd != "" {
			a.log.Warn(odd)
			a.Hint("warning: %s", odd)
		}
		a.Hint("peer %s is a member; API at %s; log: %s", a.host.Self(), a.host.Address(), a.LogPath)
		select {
		case <-ctx.Done():
		case <-a.host.Done():
			err = fmt.Errorf("the peer has stopped: %w\nhint: the log tells more: %s", a.host.Reason(), a.LogPath)
		case <-a.lost():
			err = fmt.Errorf("this node's etcd member has stopped\nhint: the log tells more: %s", a.LogPath)
		}
	}
	stop()
	return errors.Join(err, a.end())
}

// lost is closed when the member of the quorum that runs here has stopped; without one it never is.
func (a *agent) lost() <-chan struct{} {
	if a.member == nil {
		return nil
	}
	return a.member.Stopped()
}

func (a *agent) start(ctx context.Context) error {
	var err error
	if a.folder, err = host.HoldFolder(a.config.Data); err != nil {
		return err
	}
	a.LogPath = cmp.Or(a.config.LogFile, filepath.Join(a.folder.Path, "starling.log"))
	if a.log, err = host.OpenLog(a.LogPath, a.config.LogLevel); err != nil {
		return err
	}
	var known *secret.Secret
	if a.config.SecretFile != "" {
		if known, err = secret.Load(a.config.SecretFile); err != nil {
			return exit.Fail(exit.Usage, "secret_file: %w", err)
		}
	}
	if err := a.openDoor(ctx); err != nil {
		return configError(err)
	}
	if err := a.startHost(ctx, known); err != nil {
		return configError(err)
	}
	if a.config.DNS != "" {
		if err := a.host.ServeNames(context.WithoutCancel(ctx), a.config.DNS); err != nil {
			return configError(err)
		}
		a.Hint("names of instances are answered over DNS at %s", a.host.Names())
	}
	for _, warning := range a.host.Warnings() {
		a.Hint("warning: %s", warning)
	}
	return patiently(ctx, a.host.Ready, func() {
		status := a.host.Status(ctx)
		if status.OfferRefusal != "" {
			a.Hint("warning: a member that gives nothing, because its offer is refused: %s", status.OfferRefusal)
			return
		}
		a.Hint("waiting to become a member: %s, at entry %d; if it stays so, the log tells more: %s", status.Phase,
			status.Index, a.LogPath)
	})
}

// openDoor has this machine answer, as the node of a cluster that it is.
func (a *agent) openDoor(ctx context.Context) error {
	listener, err := host.Listen(a.config.Address)
	if err != nil {
		return err
	}
	members := slices.Sorted(maps.Keys(a.config.Members))
	isFirst := len(members) > 0 && members[0] == string(a.config.Node)
	a.keys, err = host.KeysOf(ctx, host.Newcomer{
		Data: a.folder.Path, Node: a.config.Node, Join: a.config.Join, First: isFirst})
	if err != nil {
		listener.Close()
	}
	if errors.Is(err, host.ErrNoKeys) {
		return exit.Fail(exit.Usage, "%w\nhint: on a machine of the cluster run `starling token create`, and start this "+
			"agent with --join and the line that it prints", err)
	}
	if err != nil {
		return err
	}
	a.door, err = host.OpenDoor(listener, host.Entry{
		Advertise: a.config.Advertise, AdminGroup: a.config.AdminGroup}, a.keys, a.log)
	return err
}

// startHost starts everything of this machine as soon as the journal answers. What is wrong with its offer is told
// before.
func (a *agent) startHost(ctx context.Context, known *secret.Secret) error {
	offer, err := a.offer()
	if err != nil {
		return err
	}
	config := host.Config{
		Node: a.config.Node, Folder: a.folder.Path, Offer: offer, Door: a.door, Keys: a.keys,
		Pulse: a.config.Pulse, Supervise: superviseCommand, Secret: known, Version: a.version, Log: a.log,
	}
	if err := config.CompleteOffer(); err != nil {
		return err
	}
	if err := a.openJournal(ctx); err != nil {
		return err
	}
	config.Journal = a.journal
	a.host, err = host.Start(context.WithoutCancel(ctx), config)
	return err
}

// offer is what this machine gives, after what its configuration overrides.
func (a *agent) offer() (terms.Offer, error) {
	capacity, err := host.Capacity(a.folder.Path)
	if err != nil {
		return terms.Offer{}, err
	}
	for kind, amount := range a.config.Capacity {
		if amount >= 0 {
			capacity[kind] = amount
		}
	}
	attributes := host.Attributes(a.config.Node)
	maps.Copy(attributes, a.config.Attributes)
	offer := host.OfferOf(capacity, attributes)
	offer.Devices, offer.PortFirst, offer.PortLast = host.WithPeers(a.config.Devices, capacity), a.config.PortFirst,
		a.config.PortLast
	return offer, nil
}

// openJournal starts this node's member of the quorum, or reaches the quorum as a client, and waits until it answers.
func (a *agent) openJournal(ctx context.Context) error {
	peerURL, isMember := a.config.Members[string(a.config.Node)]
	if !isMember {
		return a.reachJournal(ctx)
	}
	for _, at := range []string{peerURL, a.config.EtcdListen} {
		if err := canListen(at); err != nil {
			return err
		}
	}
	var err error
	cert, key, ca := a.keys.Files()
	a.member, err = etcd.Start(ctx, etcd.MemberConfig{
		Name: string(a.config.Node), DataDir: filepath.Join(a.folder.Path, "etcd"), Log: host.EngineLog{Log: a.log},
		ClientURL: a.config.EtcdListen, PeerURL: peerURL, InitialCluster: a.config.Members,
		Certificates: etcd.Certificates{CertFile: cert, KeyFile: key, CAFile: ca, ServerName: trust.ServerName},
	})
	if err != nil {
		return err
	}
	err = patiently(ctx, a.member.Ready, func() { a.tellMissing(slices.Sorted(maps.Values(a.config.Members))) })
	if err == nil {
		a.journal = a.member.Journal()
	}
	return err
}

// patiently waits for something, and tells again and again when it takes long.
func patiently(ctx context.Context, wait func(context.Context) error, tell func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- wait(ctx) }() // ends with ctx at the latest
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(quorumPatience):
			tell()
		}
	}
}

// quorumPatience is how long to wait before saying for what, and then again.
const quorumPatience = 2 * time.Second

// reachJournal connects to the quorum as a client, again and again until that works.
func (a *agent) reachJournal(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, quorumPatience)
		opened, err := etcd.Open(short, etcd.ClientConfig{Endpoints: a.config.Endpoints, TLS: trust.ClientTLS(a.keys.Shows)})
		cancel()
		if err == nil {
			a.journal = opened
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.log.Warn("the journal cannot be reached", "error", err)
		a.tellMissing(a.config.Endpoints)
	}
}

// tellMissing says which of the quorum's members do not answer.
func (a *agent) tellMissing(urls []string) {
	var missing []string
	for _, at := range urls {
		u, err := url.Parse(at)
		if err != nil {
			continue
		}
		connection, err := net.DialTimeout("tcp", u.Host, time.Second)
		if err != nil {
			missing = append(missing, at)
			continue
		}
		connection.Close()
	}
	text := "waiting for the quorum: no majority answers; all are reachable"
	if len(missing) > 0 {
		text = "waiting for the quorum: nobody answers at " + strings.Join(missing, ", ")
	}
	a.log.Warn(text)
	a.Hint("%s", text)
}

// canListen tells in our words when a port of the engine is taken; the engine's own are long.
func canListen(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", u.Host)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("another program listens on %s, where this node's etcd member must\nhint: stop it, or change etcd.members or etcd.listen", u.Host)
	case err != nil:
		return fmt.Errorf("listen for the etcd member: %w", err)
	}
	return listener.Close()
}

// end stops the peer; its tasks go on.
func (a *agent) end() error {
	var errs []error
	if a.host != nil {
		left := a.host.Running()
		errs = append(errs, a.host.Stop())
		a.Hint("the agent has stopped; %s running", console.Counted(left, "task"))
	}
	if a.door != nil {
		errs = append(errs, a.door.Close())
	}
	if a.journal != nil {
		errs = append(errs, a.journal.Close())
	}
	if a.member != nil {
		errs = append(errs, within(goodbyeMax, a.member.Close))
	}
	if a.folder != nil {
		a.folder.Release()
	}
	return errors.Join(errs...)
}

// goodbyeMax is how long this node's etcd member may take to end in good order. It waits for its clients and looks
// for a new leader, in vain if the others stop as well, and meanwhile the pulse of this node runs out.
const goodbyeMax = time.Second

// within calls a function that may be cut short by the end of the process, as a crash would, and does not wait
// longer.
func within(most time.Duration, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(most):
		return nil
	}
}

// configError makes an address that cannot be used, and an offer that the cluster would refuse, bad input.
func configError(err error) error {
	if errors.Is(err, host.ErrAddress) || errors.Is(err, host.ErrOffer) {
		return exit.Fail(exit.Usage, "%w", err)
	}
	return err
}
