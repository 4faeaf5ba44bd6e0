package process

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/assign"
	"starling/driver/cgroup"
	"starling/driver/confine"
	"starling/driver/device"
	"starling/driver/disk"
	"starling/driver/lock"
	"starling/driver/output"
	"starling/driver/quota"
	"starling/driver/ramdisk"
	"starling/driver/record"
	"starling/driver/remains"
	"starling/driver/screen"
	"starling/driver/uptime"
	"starling/driver/volume"
)

// Config says where tasks are kept and how they are owned.
type Config struct {
	// Dir is the folder of all tasks. One driver at a time may have it.
	Dir string
	// Supervisor is the command that calls Supervise with the argument that is appended to it.
	Supervisor []string
	// Small is the command that does the same but for mounting, in less time and memory; empty if there is none.
	Small []string
	// Containers makes containers ready; nil if none are to run here.
	Containers Containers
	// Free leaves tasks whatever the peer may do itself.
	Free bool
	// Hidden is a folder with all that is the peer's, of which a task finds only what is its own; empty for none.
	Hidden string
	// Covered are sockets that take orders from root, which no task finds, and folders of such.
	Covered []string
	// GPUs are the machine's; the numbers of devices of their kind are their places here.
	GPUs []device.GPU
	// Bounds say how much of each stream is kept; zero means output.DefaultBounds.
	Bounds output.Bounds
	// Retention says how much output of forgotten tasks is kept; zero means remains.Outputs.
	Retention remains.Retention
	// Failed says how many folders of failed tasks are kept; zero means remains.Folders.
	Failed remains.Retention
	// Unattended is how long tasks go on while no driver has the folder; zero means lock.UnattendedDefault.
	Unattended time.Duration
	// LeaveScope moves this process to a control group that it may divide, where its own is not one; nil for nothing.
	LeaveScope func() error
	// UnattendedSessions is how long sessions go on that nobody looks at; zero means ten minutes.
	UnattendedSessions time.Duration
}

// Driver runs tasks as processes.
type Driver struct {
	volume.Keeper
	config   Config
	boot     string
	place    cgroup.Place
	lock     *lock.Lock
	archive  *remains.Archive // of outputs
	failed   *remains.Archive // of folders in which tasks worked that failed
	changed  chan struct{}
	sessions screen.Room // those that outlive their callers
	idle     assign.Pool
	// moving guards where outputs lie: Forget moves them.
	moving sync.RWMutex

	// closing ends what waits for tasks; watching is all that does.
	closing  context.Context
	close    context.CancelFunc
	watching sync.WaitGroup

	mu         sync.Mutex
	tasks      map[string]*task
	growth     *output.Growth // made for the first follower
	namespaces bool
	warnings   []string
}

var _ driver.Driver = (*Driver)(nil)

// task is what the driver has of one; the driver's lock guards its status and alive.
type task struct {
	id     string
	folder folder
	origin origin
	// owner is the supervisor if this driver started it.
	owner  *assign.Owner
	alive  *os.File
	files  uint64        // the version of its files that it was told of
	status driver.Status // zero until it is certain that the task is owned
	// settled is closed when Start has come to its result, which is then in err.
	settled chan struct{}
	err     error
	// ended is closed when the status is Exited.
	ended chan struct{}
}

func newTask(id string, f folder) *task {
	return &task{id: id, folder: f, settled: make(chan struct{}), ended: make(chan struct{})}
}

// errClosed is what a closed driver answers.
var errClosed = errors.New("the driver is closed")

// Open takes the folder and finds the tasks that an earlier driver started in it.
func Open(c Config) (*Driver, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	c.Dir = dir
	if c.Bounds == (output.Bounds{}) {
		c.Bounds = output.DefaultBounds()
	}
	if c.Retention == (remains.Retention{}) {
		c.Retention = remains.Outputs()
	}
	if c.Failed == (remains.Retention{}) {
		c.Failed = remains.Folders()
	}
	if len(c.Small) == 0 {
		c.Small = c.Supervisor
	}
	d := &Driver{config: c, changed: make(chan struct{}, 1), tasks: map[string]*task{}}
	d.Keeper = volume.Keeper{Dir: filepath.Join(dir, "volumes"), Arrived: d.tell,
		Warn: func(line string) { d.warnOf(errors.New(line)) }}
	d.closing, d.close = context.WithCancel(context.Background())
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the process driver in %s: %w", dir, err), d.Close())
	}
	d.WarnOfAside()
	return d, nil
}

func (d *Driver) open() error {
	if len(d.config.Supervisor) == 0 {
		return errors.New("Config.Supervisor is empty")
	}
	if err := errors.Join(closeOnExec(), os.MkdirAll(d.tasksDir(), 0o711)); err != nil {
		return err
	}
	_ = disk.Spread(d.tasksDir()) // without it starts cost more
	var err error
	if d.lock, err = lock.Take(d.config.Dir, cmp.Or(d.config.Unattended, lock.UnattendedDefault)); err != nil {
		return err
	}
	if d.boot, err = bootID(); err != nil {
		return fmt.Errorf("find the name of this run of the machine: %w", err)
	}
	d.archive, err = remains.Open(filepath.Join(d.config.Dir, "forgotten"), d.config.Retention, func(file string) bool {
		return output.IsSegment(file, streamName(driver.Stdout), streamName(driver.Stderr))
	})
	if err != nil {
		return err
	}
	if d.failed, err = remains.Open(filepath.Join(d.config.Dir, "failed"), d.config.Failed, nil); err != nil {
		return err
	}
	for _, a := range []*remains.Archive{d.archive, d.failed} {
		if err := a.Undeleted(); err != nil {
			d.warnOf(err)
		}
		d.watching.Go(func() { a.Clear(d.closing, d.warnOf) })
	}
	d.survey()
	d.Keeper.Sweep(&d.watching)
	err = d.adopt()
	if err == nil {
		watcher := disk.Watcher{Folder: d.config.Dir, Tasks: d.writers, End: d.endFiller}
		d.watching.Go(func() { watcher.Watch(d.closing) })
		d.watching.Go(func() { d.failed.Watch(d.closing, d.warnOf) })
	}
	return err
}

func (d *Driver) tasksDir() string { return filepath.Join(d.config.Dir, "tasks") }

// closeOnExec has what this process has from whatever started it closed in those that it starts, lest somebody wait for
// the end of a pipe that a task holds. What the runtime has opened is closed there anyway.
func closeOnExec() error {
	files, err := os.ReadDir(openFilesFolder)
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// survey finds what this machine can do for tasks.
func (d *Driver) survey() {
	name := fmt.Sprintf("starling-%x", sha256.Sum256([]byte(d.config.Dir)))[:len("starling-")+12]
	d.place, d.warnings = cgroup.Find(name, d.config.LeaveScope)
	if err := mayHaveNamespaces(); err != nil {
		d.withoutNamespaces(err)
	} else {
		d.namespaces = true
	}
	if d.config.Free {
		d.warn(errFree.Error())
		return
	}
	for _, line := range confine.Missing(d.namespaces) {
		d.warn(line)
	}
}

// errFree is why tasks are not confined although they could be.
var errFree = errors.New("tasks are not confined, because this peer was told so")

// Unconfined tells why tasks are not kept from what is the machine's; nil if they are.
func (d *Driver) Unconfined() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.config.Free {
		return errFree
	}
	if !d.namespaces {
		return errNoNamespaces
	}
	if missing := confine.Missing(true); len(missing) > 0 {
		return errors.New(missing[0])
	}
	return nil
}

// Unbounded tells why what tasks take of the disk is watched, and not bounded by the file system; nil if it is.
func (d *Driver) Unbounded() error {
	if err := d.Unconfined(); err != nil { // such a task could take its files out of a quota
		return err
	}
	return cmp.Or(quota.Missing(d.config.Dir), quota.Missing(d.Keeper.Dir))
}

// errNoNamespaces is why much is not possible.
var errNoNamespaces = errors.New("the peer may not make namespaces; run it as root")

// withoutNamespaces gives up namespaces and says what that means.
func (d *Driver) withoutNamespaces(why error) {
	d.namespaces = false
	d.warn(fmt.Sprintf("tasks are not isolated from each other by namespaces, "+
		"and may change what they are given to read: %v", why))
	if d.place.Version == 0 {
		d.warn("a process of a task that left its process group survives when the task's supervisor is killed: there is neither a namespace nor a control group to find it by")
	}
}

// warn adds a line once; the driver's lock is held, or nobody else has the driver yet.
func (d *Driver) warn(line string) {
	if !slices.Contains(d.warnings, line) {
		d.warnings = append(d.warnings, line)
	}
}

func (d *Driver) warnOf(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.warn(err.Error())
}

// Warnings lists what this machine cannot do.
func (d *Driver) Warnings() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

// Changed receives a value after Tasks changed.
func (d *Driver) Changed() <-chan struct{} { return d.changed }

func (d *Driver) tell() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// Tasks lists all that was started and not forgotten.
func (d *Driver) Tasks() []driver.Status {
	d.mu.Lock()
	all := make([]driver.Status, 0, len(d.tasks))
	for _, t := range d.tasks {
		if t.status.State != 0 {
			status := t.status
			status.FilesVersion = t.files
			all = append(all, status)
		}
	}
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b driver.Status) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// status returns the task and its status; nil if no Start has confirmed it.
func (d *Driver) status(id string) (*task, driver.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tasks[id]
	if t == nil || t.status.State == 0 {
		return nil, driver.Status{}
	}
	status := t.status
	status.FilesVersion = t.files
	return t, status
}

// Stop has the task's supervisor send SIGTERM, and SIGKILL after grace.
func (d *Driver) Stop(id string, grace time.Duration) error {
	if err := d.order(id, stopOrder, max(0, grace)); err != nil {
		return fmt.Errorf("stop task %q: %w", id, err)
	}
	return nil
}

// Prove tells the task's supervisor.
func (d *Driver) Prove(id string, at uptime.Moment) error {
	if err := d.order(id, proveOrder, at); err != nil {
		return fmt.Errorf("prove task %q: %w", id, err)
	}
	return nil
}

// order writes a line to the supervisor of a running task.
func (d *Driver) order(id, form string, value any) error {
	t, status := d.status(id)
	if t == nil || status.State != driver.Running {
		return nil
	}
	orders, err := os.OpenFile(t.folder.orders(), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil // the supervisor is gone, and what that means is being found out
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(orders, form, value)
	if err := errors.Join(err, orders.Close()); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// Forget drops an ended task and keeps nothing but its output, and the folder of one that failed.
func (d *Driver) Forget(id string) error {
	d.moving.Lock()
	defer d.moving.Unlock()
	d.mu.Lock()
	t := d.tasks[id]
	if t == nil || t.status.State == 0 {
		d.mu.Unlock()
		return nil
	}
	if t.status.State == driver.Running {
		d.mu.Unlock()
		return fmt.Errorf("forget task %q: it is running; stop it first", id)
	}
	delete(d.tasks, id)
	d.mu.Unlock()
	ramdisk.Unmount(t.folder.private())
	_ = quota.Limit(t.folder.work(), 0) // so that its number may be used again
	err := errors.Join(d.keepFailed(t), d.archive.Add(string(t.folder), t.folder.name()))
	d.removeContainer(t)
	if err != nil {
		err = fmt.Errorf("forget task %q: %w", id, err)
		if _, missing := os.Stat(string(t.folder)); missing == nil { // it is still there, so it is not forgotten
			d.mu.Lock()
			d.tasks[id] = t
			d.mu.Unlock()
		}
	}
	d.tell()
	return err
}

// Logs reads a task's output.
func (d *Driver) Logs(ctx context.Context, id string, o driver.LogOptions) (io.ReadCloser, error) {
	options := output.Options{Stream: streamName(o.Stream), TailBytes: o.TailBytes}
	name, err := record.FolderName(id)
	if err != nil {
		return nil, fmt.Errorf("logs of task %q: %w", id, os.ErrNotExist)
	}
	d.moving.RLock()
	defer d.moving.RUnlock()
	path := d.archive.Path(name)
	t, _ := d.status(id)
	if t != nil {
		path = string(t.folder)
		if o.Follow {
			if options.Growth, err = d.watchGrowth(); err != nil {
				return nil, err
			}
			options.Ended = t.ended
		}
	}
	reader, err := output.Open(ctx, path, options)
	if err != nil {
		return nil, fmt.Errorf("logs of task %q: %w", id, err)
	}
	return reader, nil
}

// watchGrowth is what tells followers when to look again.
func (d *Driver) watchGrowth() (*output.Growth, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Err() != nil {
		return nil, errClosed
	}
	var err error
	if d.growth == nil {
		d.growth, err = output.WatchGrowth()
	}
	return d.growth, err
}

// Close releases the folder; tasks go on running.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.close()
	for _, t := range d.tasks {
		if t.alive != nil {
			wakeReader(t.folder)
			t.alive.Close()
		}
	}
	growth := d.growth
	d.growth = nil
	d.mu.Unlock()
	d.watching.Wait()
	d.idle.Close()

	d.place.Remove()
	var err error
	if growth != nil {
		err = growth.Close()
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Release())
		d.lock = nil
	}
	return err
}
