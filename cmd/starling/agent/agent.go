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
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"starling/api/door"
	"starling/api/words"
	"starling/cluster"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/host"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
	"starling/driver/device"
	"starling/journal"
	"starling/journal/etcd/quorum"
	"starling/peer/credential/vault"
	"starling/secret"
	"starling/terms"
	"starling/trust"
)

// agent is the peer of one machine.
type agent struct {
	*console.Console
	version string
	config  *settings.Agent
	// read reads the settings again.
	read   func() (*settings.Agent, error)
	folder *host.Folder
	// known is whose the folder was when this process began.
	known   host.Belonging
	log     *slog.Logger
	keys    *trust.Keys
	door    *door.Door
	journal journal.Journal
	// node is this machine's part in the quorum of etcd, nil if ZooKeeper keeps the journal.
	node *quorum.Node
	host *host.Host
	// expelled is whether others have said that this machine belongs to the cluster no more.
	expelled bool
	// backup is the value with which a new cluster is to begin, nil for none.
	backup *cluster.State
	// backups are made beside.
	backups backups
}

// Commands returns "starling agent", "starling dev", "starling recover", "starling restore", and the hidden one that
// drivers start. The version is that of this program.
func Commands(r *remote.Remote, version string) []*cobra.Command {
	return []*cobra.Command{
		newAgent(r, version), newDev(r, version), newRecover(r), newRestore(r, version), newSupervise(),
	}
}

func newAgent(r *remote.Remote, version string) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "agent",
		Short: "Run this machine's peer",
		Long: `Run this machine's peer. The first machine founds the cluster, and makes its certificate authority. All others join it
by the line that "starling token create" prints there: --join LINE, or a file with it. A machine needs that once; it remembers where
others are, and "join" with HOST:PORTs of their APIs tells it where to look if all of those are gone. Between machines there is
mutual TLS and nothing else; users of the machine are asked for nothing, see "starling user --help".

Machines keep the journal as members of the quorum, up to three of them, and five from seven machines on, if "etcd.listen" says
where their member answers. A member that stays away is replaced; "starling quorum ls" shows them. A first machine that has
lost its data joins like any other: without "join" it founds a new cluster.

When the agent stops its tasks go on, and it finds them again when it is back before its pulse has ended, or within the notice that
"absence" gives. Tasks that no agent comes back to end by themselves after that time, but not before 10 minutes.

Every setting is a key of the YAML file, a variable STARLING_... and a flag; a flag wins over a variable, that over
the file, and that over the default; but the file's address over STARLING_ADDRESS, by which commands ask. "etcd.listen" in the file is --etcd-listen and STARLING_ETCD_LISTEN.

A file for the second machine:

  node: b
  address: 10.0.0.2:7460
  join: [/etc/starling/join]           # what "starling token create" has printed on a; the first machine has none
  etcd:
    listen: https://10.0.0.2:2379      # and the port after that for the other members
  secret_file: /etc/starling/cluster.secret
  attributes: {zone: cellar}

An ensemble of ZooKeeper may keep the journal instead, with what "zkCli.sh setquota -b" gives the chroot as its room:

  zookeeper:
    servers: 10.0.0.7:2181,10.0.0.8:2181,10.0.0.9:2181/starling
    auth_file: /etc/starling/zookeeper.auth   # one line USER:PASSWORD; what is made there is for this user alone
    cert: /etc/starling/a.pem                 # with key and ca, for servers that want TLS

The journal of a running cluster moves there, and back, by "starling journal copy". The agent reads its settings again then; what its
flags and variables say stays, so what says where the journal is belongs into the file.

Its sessions must be able to end within pulse_ttl less a second: with its tickTime of 2000 that is 5s or more. A pulse
ends up to one tickTime late, so 1000 or less is better.

Jobs with the plugins ssh and mpi need the cluster's secret, a file that is the same on all nodes and for its owner alone. Make
it once and copy it; without it, or with another than most nodes have, only instances of such jobs fail on a node, and say so.
The node's attribute "secret" tells by eight digits which one it has, and nothing else of it:

  ` + secret.HowToMake("cluster.secret"),
		Example: `  starling agent --node a --data a.data
  starling token create > line && starling agent --node b --data b.data --address 127.0.0.1:7461 --join line
  starling agent --config /etc/starling/agent.yaml`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			read := func() (*settings.Agent, error) {
				return settings.Read(command, cmp.Or(file, os.Getenv("STARLING_CONFIG")))
			}
			config, err := read()
			if err != nil {
				return exit.Fail(exit.Usage, "%w", err)
			}
			if config.Hint != "" && r.Address == "" {
				r.Hint("%s", config.Hint)
			}
			return (&agent{Console: r.Console, version: version, config: config, read: read}).run(command.Context())
		},
	}
	command.Flags().StringVar(&file, "config", "", "read settings from a YAML `FILE`; also STARLING_CONFIG")
	settings.Declare(command)
	return command
}

// run runs the peer until a signal comes, wherever the journal goes meanwhile.
func (a *agent) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := a.serve(ctx)
	for errors.Is(err, journal.ErrSealed) {
		if err = a.follow(ctx); err == nil {
			err = a.serve(ctx)
		}
	}
	told := ctx.Err() != nil
	if stop(); told {
		err = nil
		a.giveNotice()
	}
	return errors.Join(err, a.end())
}

// noticeTimeout is how long to wait until a notice counts, which it does not without a quorum.
const noticeTimeout = 3 * time.Second

// giveNotice tells the others that the agent will be back, so that nothing moves meanwhile; but not when the machine
// goes down, with all that runs here.
func (a *agent) giveNotice() {
	if a.host == nil || a.config.Absence == 0 || goesDown() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
	defer cancel()
	if err := a.host.GoAway(ctx, a.config.Absence); err != nil {
		a.log.Warn("no notice could be given: others take what runs here as soon as the pulse has ended", "error", err)
		return
	}
	a.log.Info("the agent goes away with notice", "for", a.config.Absence)
	a.Hint("what runs here stays this machine's for %s", a.config.Absence)
}

// goesDown tells whether systemd is taking the machine down; without systemd that cannot be told.
func goesDown() bool {
	ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
	defer cancel()
	state, _ := exec.CommandContext(ctx, "systemctl", "is-system-running").Output() // it fails in all states but one
	return strings.TrimSpace(string(state)) == "stopping"
}

// serve starts the peer, and returns when it has ended or a signal comes.
func (a *agent) serve(ctx context.Context) error {
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
		if _, err := daemon.SdNotify(true, daemon.SdNotifyReady); err != nil {
			a.log.Warn("systemd does not learn that the agent is ready", "error", err)
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		select {
		case <-ctx.Done():
		case <-a.host.Done():
			err = fmt.Errorf("the peer has stopped: %w\nhint: the log tells more: %s", a.host.Reason(), a.LogPath)
		case lost := <-a.lost():
			err = fmt.Errorf("%w\nhint: the log tells more: %s", lost, a.LogPath)
		case reason := <-a.expulsion(watching, silent(a.host)):
			err, a.expelled = reason, true
		}
	}
	return err
}

// lost tells when the member of the quorum that runs here has ended; without one it never does.
func (a *agent) lost() <-chan error {
	if a.node == nil {
		return nil
	}
	return a.node.Lost()
}

func (a *agent) start(ctx context.Context) error {
	var err error
	if a.folder == nil {
		a.folder, err = host.HoldFolder(a.config.Data)
	}
	if err != nil {
		return err
	}
	a.LogPath = cmp.Or(a.config.LogFile, filepath.Join(a.folder.Path, "starling.log"))
	if a.log, err = host.OpenLog(a.LogPath, a.config.LogLevel, a.Err); err != nil {
		return err
	}
	a.log.Info("the agent starts", "node", string(a.config.Node), "version", a.version, "data", a.folder.Path,
		"address", a.config.Address)
	var known *secret.Secret
	if a.config.SecretFile != "" {
		if known, err = secret.Load(a.config.SecretFile); err != nil {
			return exit.Fail(exit.Usage, "secret_file: %w", err)
		}
	}
	if a.known, err = a.folder.Belongs(a.config.Node); err != nil {
		return err
	}
	if err := a.readBackup(ctx); err != nil {
		return err
	}
	if err := a.openDoor(ctx); err != nil {
		return configError(err)
	}
	if err := a.unlessExpelled(ctx, func(ctx context.Context) error { return a.startHost(ctx, known) }); err != nil {
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
	return telling(ctx, a.host.Ready, func() {
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
	a.keys, err = host.KeysOf(ctx, host.Newcomer{
		Data: a.folder.Path, Node: a.config.Node, Join: a.config.Token,
		First: len(a.config.Join) == 0 && a.known.Cluster == "",
		Waits: func(why error, atMost time.Duration) {
			a.Hint("waiting up to %v, in case it has just ended: %v", atMost, why)
		}})
	if err == nil {
		err = a.folder.RefuseCopy(ctx, a.keys)
	}
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
		Advertise: a.config.Advertise, AdminGroup: a.config.AdminGroup, Issuer: a.config.Issuer, OIDC: a.config.OIDC},
		a.keys, a.log)
	return err
}

// startHost starts everything of this machine as soon as the journal answers. What is wrong with its offer is told
// before.
func (a *agent) startHost(ctx context.Context, known *secret.Secret) error {
	offer, err := a.offer()
	if err != nil {
		return err
	}
	store, err := a.archiveStore()
	if err != nil {
		return err
	}
	secrets, err := vault.Open(a.config.Vault)
	if err != nil {
		return err
	}
	config := host.Config{
		Node: a.config.Node, Folder: a.folder.Path, Offer: offer, Door: a.door, Keys: a.keys,
		Pulse: a.config.Pulse, Absence: a.config.Absence, Supervise: superviseCommand, Secret: known,
		Version: a.version, Log: a.log, Containerd: a.config.Containerd, KeepImages: a.config.KeepImages,
		Slack: a.config.Slack, Free: a.config.Free, OwnUsers: true, HostPaths: a.config.HostPaths,
		Vault: secrets, Archive: host.ArchiveLimits{Bytes: a.config.ArchiveBytes, Age: a.config.ArchiveAge, Store: store},
		Trouble: a.backups.Trouble,
	}
	if err := config.CompleteOffer(); err != nil {
		return err
	}
	answered := a.answerMeanwhile(ctx, &config)
	err = a.openJournal(ctx)
	if answered(); err != nil {
		return err
	}
	config.Journal = a.journal
	if a.node != nil && len(a.config.Etcd.Endpoints) == 0 {
		config.Quorum = host.NewQuorum(a.node)
	}
	if a.host, err = host.Start(context.WithoutCancel(ctx), config); err != nil {
		return err
	}
	return errors.Join(a.folder.Settle(a.host.Address()), a.backups.begin(context.WithoutCancel(ctx), a))
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
	for name, path := range a.config.HostPaths {
		attributes[terms.HostPathAttribute+name] = path
	}
	if a.config.Vault.Address != "" {
		attributes[terms.VaultAttribute] = a.config.Vault.Address
	}
	offer := host.OfferOf(capacity, attributes)
	offer.Devices, offer.PortFirst, offer.PortLast = host.WithPeers(a.config.Devices, capacity), a.config.PortFirst,
		a.config.PortLast
	host.OfferGPUs(&offer, device.Find("/"))
	return offer, nil
}

// telling waits for something, and tells again and again when it takes long.
func telling(ctx context.Context, wait func(context.Context) error, tell func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- wait(ctx) }() // ends with ctx at the latest
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(quorumDelay):
			tell()
		}
	}
}

// end stops the peer; its tasks go on, but for those of a machine that was removed.
func (a *agent) end() error {
	left, stopped := 0, a.host != nil
	if stopped && !a.removed() {
		left = a.host.Running()
	}
	err := errors.Join(a.endHost(), a.endJournal())
	if stopped {
		a.Hint("the agent has stopped; %s running", words.Counted(left, "task"))
	}
	if a.folder != nil {
		a.folder.Release()
	}
	return err
}

// endHost stops the peer and all that answers, and the tasks of a machine that was removed.
func (a *agent) endHost() error {
	a.backups.end()
	var errs []error
	switch {
	case a.host == nil:
	case a.removed():
		errs = append(errs, a.host.StopWithTasks(context.Background(), expelledGrace))
	default:
		errs = append(errs, a.host.Stop())
	}
	if a.door != nil {
		errs = append(errs, a.door.Close())
	}
	a.host, a.door = nil, nil
	return errors.Join(errs...)
}

// endJournal lets the journal go, and with it the member that may run here.
func (a *agent) endJournal() error {
	var err error
	switch {
	case a.node != nil:
		err = a.node.Close()
	case a.journal != nil:
		err = a.journal.Close()
	}
	a.node, a.journal = nil, nil
	return err
}

// configError makes an address that cannot be used, and an offer that the cluster would refuse, bad input.
func configError(err error) error {
	if errors.Is(err, host.ErrAddress) || errors.Is(err, host.ErrOffer) {
		return exit.Fail(exit.Usage, "%w", err)
	}
	return err
}
