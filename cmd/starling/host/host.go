// Package host puts together all that runs on one machine: a driver, a peer and an API, and finds out what the
// machine has to give. Both "starling dev" and "starling agent" run hosts.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"starling/api"
	"starling/api/blobs"
	"starling/api/client"
	"starling/api/door"
	"starling/api/metrics"
	"starling/api/tracing"
	"starling/api/wire"
	"starling/archive"
	"starling/archive/depot"
	"starling/driver"
	"starling/driver/container"
	"starling/driver/device"
	"starling/driver/lock"
	"starling/driver/process"
	"starling/driver/scope"
	"starling/journal"
	"starling/peer"
	"starling/peer/clock"
	"starling/peer/credential"
	"starling/peer/credential/vault"
	"starling/peer/identity"
	"starling/peer/slack"
	"starling/replica/report"
	"starling/secret"
	"starling/terms"
	"starling/trust"
)

// ErrAddress tells that the API may not listen there, or that this is no address.
var ErrAddress = errors.New("the address cannot be used")

// ErrOffer tells that the cluster would refuse what the machine offers.
var ErrOffer = errors.New("the cluster would refuse what this machine offers")

// driverFolder holds the tasks, within the host's folder.
const driverFolder = "driver"

// archiveFolder holds what the peer folded, within the host's folder.
const archiveFolder = "archive"

// Config is what a host is made of.
type Config struct {
	Node terms.NodeName
	// Folder is the host's own, for its identity and its tasks.
	Folder string
	// Hidden is the folder with all that tasks must not find; empty for Folder.
	Hidden  string
	Journal journal.Journal
	// Offer is what the machine gives; its address is the door's.
	Offer terms.Offer
	// Door is where the API is asked, Keys show who this node is.
	Door  *door.Door
	Keys  *trust.Keys
	Pulse time.Duration
	// Absence is for how long the agent may be away with notice; tasks go on for that long without it, if that is more
	// than lock.UnattendedDefault.
	Absence time.Duration
	// Slack is for how long cores must have been left alone before they are offered; 0 offers none.
	Slack time.Duration
	// Quorum is who keeps the journal, nil where that is not the etcd in Starling itself.
	Quorum api.Quorum
	// Containerd is the socket of the containerd that keeps images.
	Containerd string
	// KeepImages is for how long images are kept that no version of a job names any more; zero means as usual.
	KeepImages time.Duration
	// OwnUsers gives each job a user of its own, where this process is root's and confines its tasks.
	OwnUsers bool
	// HostPaths are the folders that this machine offers, by their names, without symbolic links.
	HostPaths map[string]string
	// Vault is the server that has secrets for instances, nil for none.
	Vault *vault.Server
	// Free leaves tasks whatever this program may do itself.
	Free bool
	// Supervise is the subcommand of this program that supervises a task.
	Supervise string
	// Archive bounds the archive of what the peer folds; without bytes there is none.
	Archive ArchiveLimits
	// Secret is the cluster's, nil for none.
	Secret *secret.Secret
	// Trouble tells what else is wrong on this machine, "" for nothing; nil never tells any.
	Trouble func() string
	// Version is this program's.
	Version string
	Log     *slog.Logger
}

// Host is a running peer with its driver and its API.
type Host struct {
	*peer.Peer
	config  Config
	driver  driver.Driver
	archive *archive.Archive
	// tracer sends traces, nil if nobody wants them.
	tracer *tracing.Tracer
	// credentials are those of instances; asks are requests to other nodes about them.
	credentials *credential.Credentials
	asks        *http.Client
	// wall is the machine's clock.
	wall *clock.Wall
	// names is where names of instances are answered, nil if they are not.
	names   net.Addr
	serving sync.WaitGroup
	cancel  context.CancelFunc
	// offering is held while what the machine offers is changed.
	offering sync.Mutex
	// shut is the folder above this machine's that others may not enter, "" for none.
	shut string
}

// CompleteOffer adds to the offer what follows from the rest, and refuses one that the fold would refuse. It needs no
// journal, so that a wrong setting is told before anything is waited for.
func (c *Config) CompleteOffer() error {
	c.Offer.Address = c.Door.Address()
	c.Offer.Rules = peer.RulesNewest
	if c.Slack > 0 {
		setDevice(&c.Offer, terms.DeviceOffer{Kind: terms.Slack, Count: slack.Remembered(c.slackFile())})
	}
	if c.Secret != nil {
		setAttribute(&c.Offer, secret.Attribute, c.Secret.Fingerprint())
	}
	if reason := c.Offer.Problem(); reason != "" {
		return fmt.Errorf("%w: %s", ErrOffer, reason)
	}
	return nil
}

// Start starts everything of one machine, until Stop, or the end of ctx. The door is the host's from now on.
func Start(ctx context.Context, config Config) (*Host, error) {
	if err := config.CompleteOffer(); err != nil {
		return nil, err
	}
	if err := checkIdentity(config.Folder); err != nil {
		return nil, err
	}
	program, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("find this program, which supervises tasks: %w", err)
	}
	small, err := smallSupervisor(program, config.Folder)
	if err != nil {
		config.Log.Warn("tasks start slowly, because the whole program supervises them", "error", err)
	}
	h := &Host{asks: wire.Client(config.Keys.Shows), wall: clock.NewWall()}
	tasks, err := container.Open(container.Config{Config: process.Config{
		Dir: filepath.Join(config.Folder, driverFolder), Supervisor: []string{program, config.Supervise}, Small: small,
		Hidden: cmp.Or(config.Hidden, config.Folder), Free: config.Free, GPUs: device.Find("/"), LeaveScope: scope.Leave,
		Unattended: max(config.Absence, lock.UnattendedDefault),
	}, Socket: config.Containerd, Credentials: h.pullSecret, Sources: h.sources})
	if err != nil {
		return nil, fmt.Errorf("find the tasks of %s: %w", config.Node, err)
	}
	offerDriver(&config.Offer, tasks)
	if config.Keys.IsKeeper() {
		setAttribute(&config.Offer, keeperAttribute, terms.ContainersYes)
	}
	ctx, cancel := context.WithCancel(ctx)
	h.config, h.driver, h.cancel = config, tasks, cancel
	h.compareClocks(ctx, nil)
	h.credentials = credential.New(credential.Config{Keys: config.Keys, Address: config.Offer.Address, Driver: tasks,
		Ask: h.given, Known: h.known, TaskOf: h.taskOf, Vault: config.Vault, Log: config.Log})
	keeps, meter := h.openArchive(), metrics.NewMeter()
	told, err := h.traced(meter)
	if err != nil {
		cancel()
		return nil, errors.Join(err, tasks.Close())
	}
	h.Peer = peer.Start(ctx, peer.Config{
		Node: config.Node, Journal: config.Journal, Driver: timed{tasks, told}, Offer: config.Offer, PulseTTL: config.Pulse,
		Secret: config.Secret, Archive: keeps, Meter: told,
		Fetch:   client.NewOutputs(config.Keys.Shows).Fetch,
		Reports: config.Folder, Version: config.Version, Limits: ClusterLimits(), Private: h.credentials.Make,
		Key: config.Keys.Key(), Now: h.wall.Now,
		OwnUsers: h.givesOwnUsers(), HostPaths: config.HostPaths,
		Identity: identity.File{Path: filepath.Join(config.Folder, identityName)}, Log: config.Log,
	})
	config.Door.Answer(api.NewServer(backend{h.Peer, h, h.archive, config.Trouble}, api.Options{
		Version: config.Version, Rules: peer.RulesNewest, Quorum: config.Quorum, Meter: meter, Log: config.Log,
		Pin: h.pin, Shows: config.Keys.Shows, Blobs: blobs.NewHandler(blobs.Config{Node: config.Node, State: h.State,
			Blob: tasks.Blob, Log: config.Log})}), h.Peer)
	h.serving.Go(func() {
		select {
		case <-config.Door.Done():
			config.Log.Error("the API has stopped", "error", config.Door.Err())
			cancel() // a peer that nobody can ask must not look well
		case <-ctx.Done():
			_ = config.Door.Close() // what is wrong with it does not matter any more
		}
	})
	for _, keep := range []func(context.Context){h.keepRenewed, h.keepTime, h.keepTrusted, h.sealAnew, h.credentials.Run,
		h.tellStory} {
		h.serving.Go(func() { keep(ctx) })
	}
	h.serving.Go(func() { h.runContainers(ctx, tasks) })
	h.serving.Go(func() { h.offerSlack(ctx) })
	return h, nil
}

// traced lets what is counted be told as traces, too, if the environment says where to.
func (h *Host) traced(meter tracing.Meter) (tracing.Meter, error) {
	if !tracing.IsOn() {
		return meter, nil
	}
	var err error
	h.tracer, err = tracing.New(tracing.Of{Cluster: h.config.Keys.Cluster(), Node: h.config.Node,
		Version: h.config.Version, Log: h.config.Log}, meter)
	return h.tracer, err
}

// timed is a driver that tells how long starts take.
type timed struct {
	driver.Driver
	told tracing.Meter
}

// Start starts a task.
func (d timed) Start(ctx context.Context, t driver.Task) error {
	began := time.Now()
	err := d.Driver.Start(ctx, t)
	if id, ok := terms.ParseAllocationID(t.ID); ok {
		d.told.Started(id, time.Since(began), err)
	}
	return err
}

// offerDriver says whether the machine confines tasks, bounds what they take of the disk and runs containers, and if
// not, why.
func offerDriver(offer *terms.Offer, tasks *container.Driver) {
	answer(offer, confinedAttribute, tasks.Unconfined())
	answer(offer, quotasAttribute, tasks.Unbounded())
	answer(offer, terms.ContainersAttribute, tasks.Missing())
	if tasks.Missing() == nil {
		setAttribute(offer, "containerd", tasks.Version())
	}
}

// confinedAttribute says whether tasks are confined; a job may want that.
const confinedAttribute = "confined"

// quotasAttribute says whether the file system keeps the limits of what tasks take of the disk; a job may want that.
const quotasAttribute = "quotas"

// keeperAttribute says that the node holds the authority's key, as it did when its agent was started.
const keeperAttribute = "keeper"

// answer sets an attribute to yes, or to no with what is missing.
func answer(offer *terms.Offer, name string, missing error) {
	value := terms.ContainersYes
	if missing != nil {
		value = "no: " + missing.Error()
	}
	room := terms.AttributeBytesMax - len(name)
	setAttribute(offer, name, strings.ToValidUTF8(value[:min(len(value), room)], ""))
}

// backend is the peer as the API wants it.
type backend struct {
	*peer.Peer
	host    *Host
	archive *archive.Archive
	trouble func() string
}

// Status asks the peer, which answers at once.
func (b backend) Status() report.PeerStatus {
	status := b.Peer.Status(context.Background())
	if b.archive != nil && b.archive.Warning() != "" {
		status.Warnings = append(status.Warnings, b.archive.Warning())
	}
	if ahead := b.host.wall.Ahead(); ahead > 0 {
		status.Warnings = append(status.Warnings, clockAhead(ahead))
	}
	status.Warnings = append(status.Warnings, b.host.credentials.Warnings()...)
	if b.trouble != nil && b.trouble() != "" {
		status.Warnings = append(status.Warnings, b.trouble())
	}
	return status
}

// Archive is the past, nil if the peer keeps none.
func (b backend) Archive() api.Archive {
	if b.archive == nil {
		return nil
	}
	return b.archive
}

// ArchiveLimits bound the archive of a peer; an age of 0 is no bound.
type ArchiveLimits struct {
	Bytes int64
	Age   time.Duration
	// Store is where it is kept beyond this machine, nil for nowhere.
	Store depot.Depot
}

// OpenArchive opens the archive, nil if none is wanted. A peer that cannot runs without.
func (c *Config) OpenArchive() *archive.Archive {
	if c.Archive.Bytes == 0 {
		return nil
	}
	opened, err := archive.Open(archive.Config{Dir: filepath.Join(c.Folder, archiveFolder),
		BytesMax: c.Archive.Bytes, Age: c.Archive.Age, Knows: peer.RulesNewest, Log: c.Log,
		Store: archive.Store{Depot: c.Archive.Store, Cluster: c.Keys.Cluster()}})
	if err != nil {
		c.Log.Error("the peer keeps no archive", "error", err)
		return nil
	}
	return opened
}

// openArchive opens the archive for the peer.
func (h *Host) openArchive() peer.Archive {
	if h.archive = h.config.OpenArchive(); h.archive == nil {
		return nil
	}
	return h.archive
}

// Node is the machine's name.
func (h *Host) Node() terms.NodeName { return h.config.Node }

// Address is where others reach the API.
func (h *Host) Address() string { return h.config.Offer.Address }

// Warnings lists what tasks go without on this machine.
func (h *Host) Warnings() []string {
	all := h.driver.Warnings()
	if h.shut != "" {
		all = append(all, fmt.Sprintf("tasks whose jobs name no user run as root, for %s may not be entered by others: choose "+
			"another --data, or chmod o+x %[1]s", h.shut))
	}
	return all
}

// givesOwnUsers tells whether jobs get users of their own here: they must be able to reach what is kept for them.
func (h *Host) givesOwnUsers() bool {
	if !h.config.OwnUsers || h.config.Free || os.Geteuid() != 0 {
		return false
	}
	for at := filepath.Dir(h.config.Folder); at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode()&0o001 == 0 {
			h.shut = at
			return false
		}
	}
	return true
}

// OddSecret tells how this machine's secret is not that of most members, "" if it is.
func (h *Host) OddSecret(ctx context.Context) string {
	if h.config.Secret == nil {
		return ""
	}
	state, err := h.State(ctx, 0)
	if err != nil {
		return "" // it is told again when keys are to be written
	}
	return h.config.Secret.Odd(state, h.config.Node)
}

// Reason tells why a host that is done stopped by itself.
func (h *Host) Reason() error {
	if err := h.Err(); err != nil {
		return err
	}
	return errors.New("its journal or its API has ended")
}

// Removed tells whether a user has removed this machine from the cluster, as far as the peer has read.
func (h *Host) Removed() bool {
	known, _ := h.Registry()
	return known != nil && known.IsGone(h.config.Node)
}

// Stop ends the API and the peer. The tasks go on.
func (h *Host) Stop() error {
	h.cancel()
	h.Peer.Stop()
	h.serving.Wait()
	h.asks.CloseIdleConnections()
	if h.archive != nil {
		h.archive.Close()
	}
	if h.tracer != nil {
		h.tracer.Close()
	}
	return h.driver.Close()
}

// Running returns how many tasks run.
func (h *Host) Running() int { return len(running(h.driver)) }

// StopWithTasks ends the peer and then its tasks, and forgets them, so that who comes after finds nothing. Tasks that
// have not ended after the grace, or when hurry ends, are killed.
func (h *Host) StopWithTasks(hurry context.Context, grace time.Duration) error {
	h.Peer.Stop()
	return errors.Join(endTasks(hurry, h.driver, grace), h.Stop())
}

// running returns the ids of the tasks that run.
func running(d driver.Driver) []string {
	var ids []string
	for _, status := range d.Tasks() {
		if status.State == driver.Running {
			ids = append(ids, status.ID)
		}
	}
	return ids
}

// endTasks stops and forgets all tasks of a driver.
func endTasks(hurry context.Context, d driver.Driver, grace time.Duration) error {
	errs := []error{stopTasks(d, grace)}
	for ending := hurry.Done(); len(running(d)) > 0; {
		select {
		case <-d.Changed():
		case <-ending:
			ending = nil
			errs = append(errs, stopTasks(d, 0))
		}
	}
	for _, status := range d.Tasks() {
		errs = append(errs, d.Forget(status.ID))
	}
	return errors.Join(errs...)
}

func stopTasks(d driver.Driver, grace time.Duration) error {
	var errs []error
	for _, id := range running(d) {
		errs = append(errs, d.Stop(id, grace))
	}
	return errors.Join(errs...)
}

// setAttribute puts an attribute into its place in an offer, or replaces what is there.
func setAttribute(offer *terms.Offer, name, value string) {
	at, has := slices.BinarySearchFunc(offer.Attributes, name,
		func(a terms.EnvVar, name string) int { return cmp.Compare(a.Name, name) })
	offer.Attributes = slices.Clone(offer.Attributes)
	if !has {
		offer.Attributes = slices.Insert(offer.Attributes, at, terms.EnvVar{Name: name})
	}
	offer.Attributes[at].Value = value
}

// OfferOf puts an offer together, in the order that the cluster wants.
func OfferOf(capacity terms.Resources, attributes map[string]string) terms.Offer {
	offer := terms.Offer{Capacity: capacity, Devices: WithPeers(nil, capacity)}
	for name, value := range attributes {
		offer.Attributes = append(offer.Attributes, terms.EnvVar{Name: name, Value: value})
	}
	slices.SortFunc(offer.Attributes, func(a, b terms.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return offer
}
