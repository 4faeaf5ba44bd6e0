package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"starling/api/client"
	"starling/api/door"
	"starling/api/wire"
	"starling/api/words"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/host"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/settings"
	"starling/cmd/starling/usage"
	"starling/driver/device"
	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/memory"
	"starling/secret"
	"starling/terms"
	"starling/trust"
	"starling/web"
)

// Limits of a cluster in one process.
const (
	devPeersMax = 64
	// devReadyMax is how long its peers may take to find each other.
	devReadyMax = 30 * time.Second
	// devFolder begins the names of folders that are gone at exit.
	devFolder = "starling-dev-"
	// devArchiveBytes bound the archive of each peer that is gone at exit.
	devArchiveBytes = 64 << 20
	// devCPU, devMemory and devDisk are what each peer offers at least, if the machine has as much: enough for a task
	// or two, however many peers there are.
	devCPU, devMemory, devDisk = 1000, 1 << 30, 1 << 30
	// devGrace is what tasks get between SIGTERM and SIGKILL when it ends.
	devGrace = 5 * time.Second
)

// dev is a whole cluster in one process.
type dev struct {
	*console.Console
	version string
	address string
	peers   int
	data    string
	ports   string
	dns     string
	// containerd is the socket of one.
	containerd string
	// demo fills the cluster, and lets a machine die now and then.
	demo bool

	folder  *host.Folder
	journal journal.Journal
	member  *etcd.Member
	log     *slog.Logger
	// offers are what the peers give, hosts those that run, in the same order while all do.
	offers []terms.Offer
	hosts  []*host.Host
	// secret is of the folder: kept if that is.
	secret *secret.Secret
	// page is for browsers of this machine.
	page *web.Page
	// keys are the first peer's.
	keys *trust.Keys
	// over tells how much more the peers offer than the machine has, "" if they do not.
	over string
}

func newDev(r *remote.Remote, version string) *cobra.Command {
	d := &dev{Console: r.Console, version: version}
	command := &cobra.Command{
		Use:   "dev",
		Short: "Start a cluster in this process, to try things",
		Long: `Start a cluster of one or more real peers in this process. It needs no root, no container and no file. Its data
are gone at the end, unless --data says where to keep them. Ctrl-C stops its tasks and then itself.

The peers divide the machine among them, but each offers at least a core, so that many of them offer it several times over.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if d.demo {
				if err := d.checkDemo(command); err != nil {
					return usage.Error(command, err)
				}
			}
			if d.peers < 1 || d.peers > devPeersMax {
				return usage.Error(command, fmt.Errorf("--peers must be 1 to %d, is %d", devPeersMax, d.peers))
			}
			listen, hint := settings.ListenVariable()
			if d.address = cmp.Or(r.Address, listen, client.DefaultAddress); r.Address == "" && hint != "" {
				d.Hint("%s", hint)
			}
			return d.run(command.Context())
		},
	}
	command.Flags().IntVar(&d.peers, "peers", 1, "how many `PEERS` to start")
	command.Flags().StringVar(&d.data, "data", "", "keep the data in `DIR`")
	command.Flags().StringVar(&d.ports, "ports", fmt.Sprintf("%d-%d", settings.PortFirstDefault, settings.PortLastDefault),
		"`FIRST-LAST` TCP ports to give to tasks, shared among the peers")
	command.Flags().StringVar(&d.dns, "dns", "",
		"answer the names of instances over DNS at `HOST:PORT`, such as 127.0.0.1:5300")
	command.Flags().BoolVar(&d.demo, "demo", false,
		"show something: 20 peers, the work of three teams, and now and then the death of a machine")
	command.Flags().StringVar(&d.containerd, "containerd", settings.ContainerdDefault,
		"`SOCKET` of the containerd that keeps images for containers")
	return command
}

// run starts everything, waits for a signal, and stops everything.
func (d *dev) run(ctx context.Context) error {
	signals, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := d.start(signals)
	if err == nil {
		d.banner()
		err = d.attend(signals)
	}
	stop() // a second Ctrl-C finds the default again, unless end takes it up
	return errors.Join(err, d.end(ctx))
}

// start brings up the journal and the peers, and returns when all are members.
func (d *dev) start(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	var err error
	if d.offers, err = d.shares(); err != nil {
		return err
	}
	for i := range d.offers {
		h, err := d.startHost(ctx, i)
		if err != nil {
			return err
		}
		d.hosts = append(d.hosts, h)
		for _, warning := range h.Warnings() {
			d.log.Warn("this machine cannot do all", "warning", warning)
		}
	}
	if d.dns != "" {
		if err := d.hosts[0].ServeNames(context.WithoutCancel(ctx), d.dns); err != nil {
			return configError(err)
		}
	}
	ready, cancel := context.WithTimeout(ctx, devReadyMax)
	defer cancel()
	for _, h := range d.hosts {
		if err := h.Ready(ready); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w\nhint: the log tells more: %s", err, d.LogPath)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if d.demo {
		if err := d.fill(ctx); err != nil {
			return fmt.Errorf("fill the demo: %w", err)
		}
	}
	d.page, err = web.Open(d.peersHere())
	return err
}

// startHost starts a peer, for the first time or again.
func (d *dev) startHost(ctx context.Context, i int) (*host.Host, error) {
	keys, opened, err := d.openDoor(i)
	if err != nil {
		return nil, configError(err)
	}
	name := devNode(i)
	h, err := host.Start(context.WithoutCancel(ctx), host.Config{
		Node: name, Folder: filepath.Join(d.folder.Path, string(name)), Journal: d.journal, Offer: d.offers[i],
		Door: opened, Keys: keys, Pulse: settings.PulseDefault, Supervise: superviseCommand, Version: d.version,
		Secret: d.secret, Log: d.log, Archive: d.archive(),
		Containerd: d.containerd, Hidden: d.folder.Path,
	})
	if err != nil {
		return nil, errors.Join(configError(err), opened.Close())
	}
	return h, nil
}

// peersHere returns a client of all peers, as who runs this.
func (d *dev) peersHere() *client.Client {
	var all []string
	for _, h := range d.hosts {
		all = append(all, wire.UnixPrefix+wire.SocketIn(wire.OwnSocketFolder(), h.Address()))
	}
	return client.New(all)
}

// archive bounds the archives. What is gone at the end takes little of the disk.
func (d *dev) archive() host.ArchiveLimits {
	if d.data == "" {
		return host.ArchiveLimits{Bytes: devArchiveBytes}
	}
	return host.ArchiveLimits{Bytes: settings.ArchiveBytesDefault, Age: settings.ArchiveAgeDefault}
}

func devNode(i int) terms.NodeName { return terms.NodeName(fmt.Sprintf("dev-%d", i+1)) }

// openDoor opens the API of a peer. The first one's is at the address that was asked for, and its keys make the
// others'.
func (d *dev) openDoor(i int) (*trust.Keys, *door.Door, error) {
	address, keys := d.address, d.keys
	if i > 0 {
		address = "127.0.0.1:0"
		var err error
		name := string(devNode(i))
		if keys, err = d.keys.Another(filepath.Join(d.folder.Path, name, trust.Folder), name); err != nil {
			return nil, nil, err
		}
	}
	listener, err := host.Listen(address)
	if err != nil {
		return nil, nil, err
	}
	opened, err := host.OpenDoor(listener, host.Entry{}, keys, d.log)
	return keys, opened, err
}

// open makes the folder, the log and the journal.
func (d *dev) open(ctx context.Context) error {
	path := d.data
	if path == "" {
		// A dev cluster that was killed could not end its tasks, and nobody else will.
		if err := host.Sweep(filepath.Join(os.TempDir(), devFolder+"*")); err != nil {
			d.Hint("warning: %v", err)
		}
		made, err := os.MkdirTemp("", devFolder)
		if err != nil {
			return fmt.Errorf("make a folder for tasks and logs: %w", err)
		}
		path = made
	}
	var err error
	if d.folder, err = host.HoldFolder(path); err != nil {
		return err
	}
	d.LogPath = filepath.Join(d.folder.Path, "starling.log")
	if d.log, err = host.OpenLog(d.LogPath, slog.LevelInfo, nil); err != nil {
		return err
	}
	if d.secret, err = secret.LoadOrMake(filepath.Join(d.folder.Path, "cluster.secret")); err != nil {
		return err
	}
	if d.keys, err = host.KeysOf(ctx, host.Newcomer{Data: d.folder.Path, Node: devNode(0), First: true}); err != nil {
		return err
	}
	if d.data == "" {
		d.journal = memory.New()
		return nil
	}
	d.member, err = etcd.Start(ctx, etcd.MemberConfig{
		Name: "dev", DataDir: filepath.Join(d.folder.Path, memberFolder),
		Log:       host.EngineLog{Log: d.log, Folder: d.folder.Path, Tell: d.Hint},
		ClientURL: "https://127.0.0.1:0", PeerURL: "https://127.0.0.1:0", Certificates: nodeCertificates(d.keys),
	})
	if err != nil {
		return err
	}
	if err := d.member.Ready(ctx); err != nil {
		return err
	}
	d.journal = d.member.Journal()
	return nil
}

// shares divides what the machine has, and the ports, evenly among the peers. Many peers offer the machine several
// times over, so that what is tried runs.
func (d *dev) shares() ([]terms.Offer, error) {
	capacity, err := host.Capacity(d.folder.Path)
	if err != nil {
		return nil, err
	}
	first, last, err := settings.Ports(d.ports)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "--ports: %w", err)
	}
	each := (int(last) - int(first) + 1) / d.peers
	if each == 0 {
		return nil, exit.Fail(exit.Usage, "--ports: %s are not enough for %s", d.ports, words.Counted(d.peers, "peer"))
	}
	machine := capacity
	for kind, least := range (terms.Resources{devCPU, devMemory, devDisk}) {
		capacity[kind] = max(capacity[kind]/int64(d.peers), min(capacity[kind], least))
	}
	if tenths := 10 * capacity[terms.CPU] * int64(d.peers) / machine[terms.CPU]; tenths > 10 {
		d.over = fmt.Sprintf(" (each offers %s cpu, together %d.%d times what this machine has)",
			terms.CPU.Round(capacity[terms.CPU]), tenths/10, tenths%10)
	}
	gpus := device.Find("/")
	if d.peers > 1 {
		gpus = nil // each peer would give away all
	}
	offers := make([]terms.Offer, d.peers)
	for i := range offers {
		attributes := host.Attributes(devNode(i))
		if d.demo {
			attributes["rack"] = demoRack(i)
		}
		offers[i] = host.OfferOf(capacity, attributes)
		host.OfferGPUs(&offers[i], gpus)
		offers[i].PortFirst = first + uint16(i*each)
		offers[i].PortLast = offers[i].PortFirst + uint16(each-1)
	}
	return offers, nil
}

// banner says, in at most six lines, where everything is and what to do next.
func (d *dev) banner() {
	kept := "gone at exit; --data DIR keeps it"
	if d.data != "" {
		kept = "in " + d.folder.Path
	}
	how := ""
	if _, port, _ := net.SplitHostPort(d.hosts[0].Address()); port != client.DefaultPort {
		how = "export STARLING_ADDRESS=" + d.hosts[0].Address() + " && "
	}
	fmt.Fprintf(d.Out, "starling dev: %s ready%s, API at %s\n", words.Counted(d.peers, "peer"), d.over,
		d.hosts[0].Address())
	names := ""
	if at := d.hosts[0].Names(); at != nil {
		names = "; names over DNS at " + at.String()
	}
	fmt.Fprintf(d.Out, "data: %s; log: %s%s\n", kept, d.LogPath, names)
	if d.demo {
		fmt.Fprintf(d.Out, "demo: the work of three teams runs; about once a minute a machine dies, and comes back\n")
		fmt.Fprintf(d.Out, "next: %sstarling ps && starling pool ls && starling why %s\n", how, demoWaits)
	} else {
		fmt.Fprintf(d.Out, "next: %sstarling run -- echo hi\n", how)
		fmt.Fprintf(d.Out, "      starling init && starling run hello.yaml && starling ps\n")
	}
	fmt.Fprintf(d.Out, "page: %s\n", d.page.Link(0))
	fmt.Fprintf(d.Out, "Ctrl-C stops the tasks and everything else.\n")
}

// attend waits until it is told to stop, or a peer stops by itself. In a demo it lets machines die meanwhile.
func (d *dev) attend(ctx context.Context) error {
	broken := make(chan *host.Host)
	var attendants sync.WaitGroup
	defer attendants.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := func(h *host.Host) context.CancelFunc {
		watched, leave := context.WithCancel(ctx)
		attendants.Go(func() {
			select {
			case <-h.Done():
				select {
				case broken <- h:
				case <-watched.Done():
				}
			case <-watched.Done():
			}
		})
		return leave
	}
	story := deaths{dev: d, watch: watch}
	for _, h := range d.hosts {
		story.leave = append(story.leave, watch(h))
	}
	next := story.first()
	for {
		select {
		case h := <-broken:
			return fmt.Errorf("peer %s has stopped: %w\nhint: the log tells more: %s", h.Node(), h.Reason(), d.LogPath)
		case <-ctx.Done():
			return nil
		case <-next:
			var err error
			if next, err = story.goOn(ctx); err != nil {
				return err
			}
		}
	}
}

// end stops the peers, then their tasks, then the journal. A second Ctrl-C kills what is left of the tasks.
func (d *dev) end(ctx context.Context) error {
	hurry, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var errs []error
	if d.page != nil {
		errs = append(errs, d.page.Close())
	}
	left := 0
	for _, h := range d.hosts {
		left += h.Running()
	}
	if left > 0 {
		d.Hint("stopping %s, up to %s; Ctrl-C again kills", words.Counted(left, "task"), devGrace)
	}
	var ending sync.WaitGroup
	ended := make([]error, len(d.hosts))
	for i, h := range d.hosts {
		ending.Go(func() { ended[i] = h.StopWithTasks(hurry, devGrace) })
	}
	ending.Wait()
	errs = append(errs, ended...)
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
	}
	if d.member != nil {
		errs = append(errs, d.member.Close())
	}
	if d.folder != nil {
		d.folder.Release()
		if d.data == "" {
			errs = append(errs, os.RemoveAll(d.folder.Path))
		}
	}
	if len(d.hosts) > 0 {
		d.Hint("starling dev has stopped: %s", strings.TrimSpace(words.Counted(left, "task")+" ended"))
	}
	return errors.Join(errs...)
}
