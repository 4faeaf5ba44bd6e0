package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"starling/driver"
	"starling/driver/assign"
	"starling/driver/device"
	"starling/driver/disk"
	"starling/driver/plain"
	"starling/driver/program"
	"starling/driver/record"
	"starling/driver/volume"
)

// Start has a new supervisor own t, and returns when it does.
func (d *Driver) Start(ctx context.Context, t driver.Task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(t.Command) == 0 && t.Container == nil {
		return fmt.Errorf("start task %q: it has no command", t.ID)
	}
	name, err := record.FolderName(t.ID)
	if err != nil {
		return fmt.Errorf("start task: %w", err)
	}
	fresh := newTask(t.ID, folder(filepath.Join(d.tasksDir(), name)))
	d.mu.Lock()
	if d.closing.Err() != nil {
		d.mu.Unlock()
		return errClosed
	}
	if known := d.tasks[t.ID]; known != nil {
		d.mu.Unlock()
		return known.wait(ctx)
	}
	d.tasks[t.ID] = fresh
	d.watching.Add(1) // Close waits for a start, too
	d.mu.Unlock()
	defer d.watching.Done()

	if fresh.err = d.start(ctx, fresh, t); fresh.err != nil {
		fresh.err = fmt.Errorf("start task %q: %w", t.ID, fresh.err)
		d.mu.Lock()
		delete(d.tasks, t.ID)
		d.mu.Unlock()
	}
	close(fresh.settled)
	return fresh.err
}

// wait returns the result of the Start that is under way or was.
func (t *task) wait(ctx context.Context) error {
	select {
	case <-t.settled:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start makes the folder and the supervisor. After an error nothing is left of either.
func (d *Driver) start(ctx context.Context, t *task, spec driver.Task) error {
	t.origin = origin{Boot: d.boot, Place: d.place, Group: "task-" + t.folder.name(),
		Disk: disk.Use{Limit: spec.Limits.DiskBytes, Asked: spec.Limits.DiskBytesAsked,
			Volumes: volume.Paths(d.Dir, spec.Volumes), VolumesLimit: spec.Limits.VolumesBytes},
		Quotas: d.Unbounded() == nil}
	if spec.Container != nil {
		t.origin.Image, t.origin.Runtime = spec.Container.Image, d.runtime()
	}
	if err := disk.AwaitRoom(ctx, d.config.Dir); err != nil {
		return err
	}
	devices := d.give(&spec)
	err := t.makeFolder(&spec)
	a := assignment{Task: spec, Folder: string(t.folder), Group: t.origin.Group, Place: d.place, Bounds: d.config.Bounds,
		Volumes: d.Dir, Quotas: t.origin.Quotas,
		Free: d.config.Free, Hidden: d.config.Hidden, Covered: d.config.Covered, Devices: devices}
	a.Task.Limits = t.origin.bounded(spec.Limits)
	if a.Task.Limits.Processes == 0 && !a.Free {
		a.Task.Limits.Processes = processesMax
	}
	if err == nil {
		a.Container, err = d.prepare(ctx, t, &spec)
	}
	if err != nil {
		return errors.Join(err, d.remove(t))
	}
	for {
		alive, err := d.handTo(ctx, t, &a)
		if err == nil && d.load(t) {
			d.settle(t, alive)
			return nil
		}
		if d.missed(t) && ctx.Err() == nil {
			continue // with another one
		}
		if err == nil {
			words, _ := os.ReadFile(t.folder.words())
			err = fmt.Errorf("its supervisor ended: %s", bytes.TrimSpace(words))
		}
		return errors.Join(err, d.abandon(t))
	}
}

// handTo has a supervisor own the task, one that waits for another if there is one. Without an error it has told that
// it does, or has ended.
func (d *Driver) handTo(ctx context.Context, t *task, a *assignment) (alive *bufio.Reader, err error) {
	if err := d.send(t, a); err != nil {
		return nil, err
	}
	quit := context.AfterFunc(ctx, t.owner.Kill)
	unsynced := record.Sync(d.tasksDir()) // the supervisor syncs what is in the folder meanwhile
	alive = bufio.NewReader(t.alive)
	awaitStarted(alive)
	if !quit() { // the supervisor was killed, or is about to be
		_, _ = awaitEnd(alive)
		return nil, ctx.Err()
	}
	return alive, unsynced
}

// missed tells whether the supervisor died that was to own the task, after another one and before it began with this
// one; then nothing is left of it.
func (d *Driver) missed(t *task) bool {
	if t.owner == nil || !t.owner.Used {
		return false
	}
	t.owner.End() // or it could still begin
	if _, began := t.folder.reserved(); began {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.alive.Close()
	return true
}

// give tells the task in its environment which GPUs are its own, and returns the devices that it needs.
func (d *Driver) give(t *driver.Task) []string {
	numbers := device.Numbers(t.Devices)
	t.Env = slices.Clone(t.Env)
	for _, entry := range device.Environment(d.config.GPUs, numbers) {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := program.Variable(t.Env, name); !set {
			t.Env = append(t.Env, entry)
		}
	}
	return device.Files(device.Given(d.config.GPUs, numbers))
}

// processesMax is how many processes and threads a task may have that has no limit of its own: more than programs have,
// and so few that a machine stays usable if they multiply.
const processesMax = 4096

// makeFolder makes the folder of a task, with what is to be there before the supervisor is, which needs it not.
func (t *task) makeFolder(spec *driver.Task) error {
	err := t.folder.make()
	if err == nil {
		err = record.KeepID(string(t.folder), t.id)
	}
	if err == nil {
		err = t.folder.write(originRecord, t.origin)
	}
	if err == nil {
		err = t.startFiles(spec.Files)
	}
	if err == nil {
		err = t.keepPrivate(spec.Private, spec.User)
		spec.Private = nil
	}
	if err == nil && spec.Files != nil {
		t.files, spec.Files = spec.Files.Version, nil
	}
	return err
}

// awaitStarted reads until the supervisor has told that it owns the task; false if it ended before.
func awaitStarted(alive *bufio.Reader) bool {
	for {
		switch line, err := alive.ReadString('\n'); {
		case err != nil:
			return false
		case line == startedLine:
			return true
		}
	}
}

// awaitEnd reads until the supervisor does not own the task any more, and tells whether it then waits for another; the
// error is io.EOF then.
func awaitEnd(alive *bufio.Reader) (idle bool, err error) {
	for {
		line, err := alive.ReadString('\n')
		if err != nil {
			return idle, err
		}
		idle = line == idleLine
	}
}

// send sends the assignment, which it completes, to a supervisor.
func (d *Driver) send(t *task, a *assignment) error {
	// The writing end is open before the reading one, which else would be at its end already; and it is sent to the
	// supervisor, so that there is no moment at which that could be taken for dead.
	living, err := plain.Open(t.folder.alive(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer living.Close()
	orders, err := plain.Open(t.folder.orders(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer orders.Close()
	words, err := plain.Open(t.folder.words(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	if err := d.openAlive(t); err != nil {
		return err
	}
	files := []*os.File{aliveFile: living, ordersFile: orders, wordsFile: words}
	if a.Container != nil {
		whole, err := os.Open(d.config.Supervisor[0])
		if err != nil {
			return fmt.Errorf("open this program, which mounts for containers: %w", err)
		}
		defer whole.Close()
		files, a.Mounter = append(files, whole), d.config.Supervisor[1:]
	}
	owner, err := d.engage(t, a, words)
	if err == nil {
		// A supervisor that ends before it has read all of it leaves nothing to be told here that its words do not.
		_ = owner.Line.Send(a, files)
	}
	return err
}

// openAlive opens the reading end of alive, which Close closes.
func (d *Driver) openAlive(t *task) error {
	alive, err := openAlive(t.folder)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Err() != nil {
		alive.Close()
		return errClosed
	}
	t.alive = alive
	return nil
}

// engage finds a supervisor that waits for a task, or forks one.
func (d *Driver) engage(t *task, a *assignment, words *os.File) (owner *assign.Owner, err error) {
	if a.Container == nil {
		owner, a.Namespaces = d.idle.Take(), true
	}
	if owner == nil {
		owner, a.Namespaces, err = d.fork(t.folder, a.Container != nil, words)
	}
	t.owner = owner
	return owner, err
}

// fork starts a supervisor, without namespaces if they are refused. Where it may own other tasks later, the words with
// which it is called, which those find in their /proc, do not name this one.
func (d *Driver) fork(f folder, contained bool, words *os.File) (o *assign.Owner, namespaces bool, err error) {
	line, input, err := assign.NewLine()
	if err != nil {
		return nil, false, err
	}
	defer input.Close()
	d.mu.Lock()
	namespaces = d.namespaces
	d.mu.Unlock()
	generation := d.idle.Generation()
	command := append(slices.Clip(d.config.Small), string(f))
	if !contained {
		command[len(command)-1] = d.tasksDir() + "/"
	}
	start := func() (*os.Process, error) {
		return os.StartProcess(command[0], command, &os.ProcAttr{
			Dir: "/",
			// One processor is plenty, and the threads for more cost memory in every supervisor.
			Env:   []string{"GOMAXPROCS=1"},
			Files: []*os.File{input, words, words},
			Sys:   supervisorAttributes(namespaces),
		})
	}
	process, err := start()
	if err != nil && namespaces &&
		(errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
		d.mu.Lock()
		d.withoutNamespaces(err)
		d.mu.Unlock()
		namespaces = false
		process, err = start()
	}
	if err != nil {
		_ = line.Close()
		return nil, false, fmt.Errorf("start the supervisor: %w", err)
	}
	return &assign.Owner{Process: process, Line: line, Generation: generation}, namespaces, nil
}
