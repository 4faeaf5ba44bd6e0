package container

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"

	"starling/driver"
	"starling/driver/device"
	"starling/driver/image"
	"starling/driver/process"
)

// namespace is what containerd keeps Starling's images and leases in, apart from those of others.
const namespace = "starling"

// answerMax is how long containerd has for what takes it no time.
const answerMax = 2 * time.Second

// stallDefault is how long a registry may send nothing.
const stallDefault = time.Minute

// Config says how tasks and their containers are kept.
type Config struct {
	process.Config
	// Socket is where containerd listens.
	Socket string
	// Stall is how long a registry may send nothing before a pull is given up; zero means a minute.
	Stall time.Duration
	// Credentials returns the config.json of Docker with which the registry of a task's image is asked, if it wants
	// credentials; nil for none. It is kept nowhere.
	Credentials func(ctx context.Context, task string) ([]byte, error)
	// Sources returns the other machines that a task's image is asked of, before its registry; nil for none.
	Sources func(ctx context.Context, task string) []image.Source
	// CDI are the folders with specs of devices, the later before the earlier; none means /etc/cdi and /var/run/cdi.
	CDI []string
}

// Driver runs tasks as processes and in containers.
type Driver struct {
	*process.Driver
	engine *engine
	// found is closed when all that containers need is there.
	found chan struct{}
	close context.CancelFunc
	looks sync.WaitGroup
}

var _ driver.Driver = (*Driver)(nil)

// runCDI is where machines have specs of devices until they are started again.
const runCDI = "/run/cdi"

// lookAgain is how often a driver looks for what was missing.
const lookAgain = 2 * time.Second

// Open takes the folder and finds the tasks that an earlier driver started in it. A machine without containerd runs
// processes only until that is there, and one on which this process may not make containers for ever; Missing tells.
func Open(c Config) (*Driver, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if c.Stall == 0 {
		c.Stall = stallDefault
	}
	e := &engine{owner: fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:16], tasks: filepath.Join(dir, "tasks"),
		socket: c.Socket, stall: c.Stall, credentials: c.Credentials, sources: c.Sources, busy: map[string]chan struct{}{},
		misfits: map[string]misfit{},
		gone:    make(chan struct{}, 1), gpus: c.GPUs, folders: c.CDI}
	if e.client, err = containerd.New(c.Socket, containerd.WithDefaultNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("use containerd at %s: %w", c.Socket, err)
	}
	c.Containers, c.Covered = e, append(c.Covered, orders(c.Socket, dir)...)
	e.there.Store(&equipment{lack: errors.New("containers are being looked for")})
	if len(e.gpus) > 0 {
		_ = os.Mkdir(runCDI, 0o755) // what is there is kept from tasks; without it they could make it
		e.readCDI()
	}
	d := &Driver{engine: e, found: make(chan struct{})}
	if d.Driver, err = process.Open(c.Config); err != nil {
		return nil, errors.Join(err, e.client.Close())
	}
	var ctx context.Context
	ctx, d.close = context.WithCancel(context.Background())
	d.looks.Go(func() { e.clear(ctx) })
	if err := d.MayContain(); err != nil {
		e.there.Store(&equipment{lack: err})
	} else if e.look() {
		close(d.found)
	} else {
		d.looks.Go(func() { d.lookUntilFound(ctx) })
	}
	return d, nil
}

// orders are the paths at which containerd takes orders. A folder below /run is covered as a whole, unless tasks are
// kept there: in the place of a single file containerd makes another one when it is started again.
func orders(socket, tasks string) []string {
	folder := filepath.Dir(socket)
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	if strings.HasPrefix(folder, "/run/") && !strings.HasPrefix(tasks, folder+"/") {
		return []string{folder}
	}
	return []string{socket, socket + ".ttrpc"}
}

// lookUntilFound looks for what is missing until ctx ends: containerd may be started later than this process.
func (d *Driver) lookUntilFound(ctx context.Context) {
	for {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return
		}
		if d.engine.look() {
			close(d.found)
			return
		}
	}
}

// Missing tells why no containers run here, nil if they do.
func (d *Driver) Missing() error { return d.engine.there.Load().lack }

// Warnings lists what this machine cannot do, specs of devices that cannot be used included.
func (d *Driver) Warnings() []string {
	all := d.Driver.Warnings()
	if trouble := d.engine.trouble.Load(); trouble != nil {
		all = append(all, *trouble...)
	}
	if behind := d.engine.behind.Load(); behind != nil {
		all = append(all, fmt.Sprintf("what ended containers have changed is not deleted yet: %v", *behind))
	}
	return all
}

// Found is closed when nothing is missing.
func (d *Driver) Found() <-chan struct{} { return d.found }

// Version is that of containerd.
func (d *Driver) Version() string { return d.engine.there.Load().version }

// Close releases this process's hold; tasks go on running.
func (d *Driver) Close() error {
	d.close()
	d.looks.Wait()
	return errors.Join(d.Driver.Close(), d.engine.client.Close())
}

// engine is containerd, with what one driver has there.
type engine struct {
	client *containerd.Client
	socket string
	there  atomic.Pointer[equipment]
	owner  string
	tasks  string // the folder of all tasks
	stall  time.Duration
	// credentials and sources are those of Config, which may be nil.
	credentials func(ctx context.Context, task string) ([]byte, error)
	sources     func(ctx context.Context, task string) []image.Source
	gpus        []device.GPU
	folders     []string // of specs of CDI
	// trouble is what was wrong with these when they were read last.
	trouble atomic.Pointer[[]string]
	// gone is told when a task is; behind is why containerd keeps something for such, nil for nothing.
	gone   chan struct{}
	behind atomic.Pointer[error]

	mu   sync.Mutex
	busy map[string]chan struct{} // images that are being pulled, leases that are made or given up
	// misfits are images that did not fit onto the disk.
	misfits map[string]misfit
}

// equipment is what a machine has for containers.
type equipment struct {
	version     string
	snapshotter string
	// root is the folder of the file systems, "" if containerd does not tell.
	root    string
	runtime string
	// lack is why no containers run; nil if they do.
	lack error
}

// look looks for all that containers need, has what was left for tasks that are gone given up, and tells whether
// containers run.
func (e *engine) look() bool {
	now, err := e.find()
	now.lack = err
	e.there.Store(now)
	e.Remove("")
	return err == nil
}

// find looks for all that containers need.
func (e *engine) find() (*equipment, error) {
	at := &equipment{}
	if _, err := os.Stat(e.socket); err != nil {
		return at, fmt.Errorf("containerd does not run: %w", err)
	}
	var err error
	if at.runtime, err = exec.LookPath("runc"); err != nil {
		return at, fmt.Errorf("runc is missing: %w", err)
	}
	if _, err = exec.LookPath("nsenter"); err != nil {
		return at, fmt.Errorf("nsenter is missing: %w", err)
	}
	ctx, cancel := e.context()
	defer cancel()
	version, err := e.client.Version(ctx)
	if err != nil {
		return at, fmt.Errorf("containerd at %s: %w", e.socket, err)
	}
	at.version = version.Version
	plugins, err := e.client.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1")
	if err != nil {
		return at, fmt.Errorf("containerd at %s: its snapshotters: %w", e.socket, err)
	}
	for _, name := range []string{"overlayfs", "native"} {
		for _, plugin := range plugins.Plugins {
			if plugin.ID == name && plugin.InitErr == nil && at.snapshotter == "" {
				at.snapshotter, at.root = name, plugin.Exports["root"]
			}
		}
	}
	if at.snapshotter == "" {
		return at, fmt.Errorf("containerd at %s has neither of the snapshotters overlayfs and native", e.socket)
	}
	return at, nil
}

// context is for what containerd does at once, also while a task is being ended.
func (e *engine) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.within(context.Background()), answerMax)
}

// within is a context for questions to containerd.
func (e *engine) within(ctx context.Context) context.Context {
	return image.Quiet(namespaces.WithNamespace(ctx, namespace))
}

// Runtime is the path of runc.
func (e *engine) Runtime() string {
	return cmp.Or(e.there.Load().runtime, "runc")
}

// ownerLabel is on the leases of a driver.
const ownerLabel = "starling.owner"

// lease is the name of what is kept for a task, and of its writable file system.
func (e *engine) lease(key string) string { return "starling-" + e.owner + "-" + key }

// Remove has what is kept for a task given up, beside whoever asks for it.
func (e *engine) Remove(string) {
	select {
	case e.gone <- struct{}{}:
	default:
	}
}

// clear gives up what is kept for tasks that are gone, until ctx ends. A containerd that does not answer is asked one
// question at a time, with pauses; without one, whoever finds it sweeps.
func (e *engine) clear(ctx context.Context) {
	for {
		select {
		case <-e.gone:
		case <-ctx.Done():
			return
		}
		for at := e.there.Load(); at.lack == nil && ctx.Err() == nil; {
			err := e.sweep(ctx, at)
			if err == nil {
				e.behind.Store(nil)
				break
			}
			e.behind.Store(&err)
			select {
			case <-time.After(lookAgain):
			case <-ctx.Done():
			}
		}
	}
}

// remove gives up what is kept for a task, unless that is there again.
func (e *engine) remove(ctx context.Context, at *equipment, name, folder string) error {
	release, err := e.lock(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	err = e.client.SnapshotService(at.snapshotter).Remove(ctx, name)
	if err == nil || errdefs.IsNotFound(err) {
		err = e.client.LeasesService().Delete(ctx, leases.Lease{ID: name})
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the container %s from containerd: %w", name, err)
	}
	return nil
}

// removeMax is how long containerd has for deleting what one container has changed.
const removeMax = time.Minute

// sweep gives up what is kept for tasks that are not there any more. When containerd does not answer nothing else is
// asked.
func (e *engine) sweep(ctx context.Context, at *equipment) error {
	ask, cancel := context.WithTimeout(e.within(ctx), answerMax)
	defer cancel()
	kept, err := e.client.LeasesService().List(ask, fmt.Sprintf("labels.%q==%s", ownerLabel, e.owner))
	if err != nil {
		return fmt.Errorf("list what containerd keeps: %w", err)
	}
	for _, lease := range kept {
		key, ours := strings.CutPrefix(lease.ID, e.lease(""))
		if !ours {
			continue
		}
		ask, cancel := context.WithTimeout(e.within(ctx), removeMax)
		failure := e.remove(ask, at, lease.ID, filepath.Join(e.tasks, key))
		isSilent := ask.Err() != nil || errdefs.IsUnavailable(failure)
		cancel()
		if err = errors.Join(err, failure); isSilent {
			break
		}
	}
	return err
}
