// Package fake is a driver whose tasks are played from a script, for tests of whatever uses a driver.
//
// A [Machine] plays the tasks and outlives its drivers, as real tasks outlive the peer's process. It uses the time
// package and no goroutine that waits, so it fits into a testing/synctest bubble.
package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/uptime"
)

// OnTerminate is what a task does when it is asked to stop.
type OnTerminate uint8

// What a task does when it is asked to stop.
const (
	// Dies: the signal ends it at once.
	Dies OnTerminate = iota
	// Exits: it ends at once, with its Behaviour's ExitCode.
	Exits
	// Ignores: it runs on until the grace is over and it is killed.
	Ignores
)

// Behaviour is how one task goes. The zero value runs until it is told to end.
type Behaviour struct {
	// Refuse makes Start return this error and keep nothing.
	Refuse error
	// Fail makes the task one that could not be started, for this reason.
	Fail string
	// Stdout and Stderr are written when it starts.
	Stdout, Stderr string
	// Ends tells that it ends by itself After that time, with ExitCode, or by Signal if that is not 0.
	Ends     bool
	After    time.Duration
	ExitCode int
	Signal   int
	// Terminated is what it does when it is asked to stop, and LastWords what it then writes to stdout.
	Terminated OnTerminate
	LastWords  string
	// Beside is what a program that is run beside it returns; nil is that of all that succeed.
	Beside func(command []string) error
}

// Machine plays tasks. It is safe for concurrent use.
type Machine struct {
	script func(driver.Task) Behaviour
	// Volumes is the folder of volumes; without one, they have only names. It must be set before the first use.
	Volumes string

	mu        sync.Mutex
	lastPID   int
	tasks     map[string]*task
	forgotten map[string]*task
	volumes   map[string]bool // by their sets
	changed   []chan struct{}
}

// task is one played task; the machine's lock guards it.
type task struct {
	status    driver.Status
	behaviour Behaviour
	output    map[driver.Stream]string
	kill      *time.Timer
	killAt    time.Time
	proofs    driver.Proofs
	proof     uptime.Moment
	unproved  *time.Timer // stops it; nil without proofs
	gaveUp    bool        // that has happened
	files     driver.FileSet
	private   []driver.File
	// grown is closed and replaced whenever the output or the state changed.
	grown chan struct{}
}

// NewMachine returns a machine without tasks. The script says how each goes; nil means the zero Behaviour for all.
// It is called once for a task and must not use the machine.
func NewMachine(script func(driver.Task) Behaviour) *Machine {
	if script == nil {
		script = func(driver.Task) Behaviour { return Behaviour{} }
	}
	return &Machine{script: script, tasks: map[string]*task{}, forgotten: map[string]*task{}, volumes: map[string]bool{}}
}

// Exit ends a running task as if its program had done so.
func (m *Machine) Exit(id string, code int) { m.end(id, driver.Status{ExitCode: code}) }

// Kill ends a running task by a signal.
func (m *Machine) Kill(id string, signal syscall.Signal) { m.end(id, bySignal(signal)) }

// Lose ends a running task in a way that leaves nothing known but the reason, as a restart of the machine does.
func (m *Machine) Lose(id, reason string) {
	m.end(id, driver.Status{ExitCode: driver.NoExitCode, Error: reason, Lost: true})
}

// Write adds to the output of a task.
func (m *Machine) Write(id string, stream driver.Stream, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tasks[id]; t != nil {
		t.output[stream] += text
		t.wake()
	}
}

func bySignal(signal syscall.Signal) driver.Status {
	return driver.Status{ExitCode: 128 + int(signal), Signal: int(signal)}
}

func (m *Machine) end(id string, how driver.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tasks[id]; t != nil {
		m.endLocked(t, how)
	}
}

// endLocked ends the task if it runs.
func (m *Machine) endLocked(t *task, how driver.Status) {
	if t.status.State != driver.Running {
		return
	}
	how.Unproved = how.Unproved || t.gaveUp
	how.FilesVersion = t.status.FilesVersion
	how.ID, how.State, how.StartedAt, how.EndedAt = t.status.ID, driver.Exited, t.status.StartedAt, time.Now()
	t.status = how
	for _, timer := range []*time.Timer{t.kill, t.unproved} {
		if timer != nil {
			timer.Stop()
		}
	}
	t.wake()
	m.tell()
}

func (t *task) wake() {
	close(t.grown)
	t.grown = make(chan struct{})
}

// tell tells all drivers that the tasks changed.
func (m *Machine) tell() {
	for _, changed := range m.changed {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// envOf is a task's environment with the paths of its volumes, if they have any.
func (m *Machine) envOf(t *driver.Task) []string {
	env := slices.Clip(t.Env)
	for _, v := range t.Volumes {
		if m.Volumes != "" {
			env = append(env, v.Variable+"="+filepath.Join(m.Volumes, v.Set, v.Name))
		}
	}
	return env
}

// start plays a new task.
func (m *Machine) start(t driver.Task) error {
	if t.ID == "" || len(t.Command) == 0 {
		return fmt.Errorf("start task %q: it needs an ID and a command", t.ID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks[t.ID] != nil {
		return nil
	}
	t.Env = m.envOf(&t)
	behaviour := m.script(t)
	if behaviour.Refuse != nil {
		return fmt.Errorf("start task %q: %w", t.ID, behaviour.Refuse)
	}
	m.lastPID++
	played := &task{
		status:    driver.Status{ID: t.ID, State: driver.Running, PID: m.lastPID, StartedAt: time.Now()},
		behaviour: behaviour,
		output:    map[driver.Stream]string{driver.Stdout: behaviour.Stdout, driver.Stderr: behaviour.Stderr},
		grown:     make(chan struct{}), private: slices.Clone(t.Private),
	}
	if t.Files != nil {
		played.files, played.status.FilesVersion = *t.Files, t.Files.Version
	}
	m.tasks[t.ID] = played
	for _, v := range t.Volumes {
		m.volumes[v.Set] = true
	}
	m.tell()
	played.proofs, played.proof = t.Proofs, t.Proofs.First
	switch own := behaviour.own(); {
	case t.Proofs.TooOld(played.proof):
		clear(played.output)
		m.endLocked(played, driver.Status{ExitCode: driver.NoExitCode, Error: "the proof that it is wanted was too old",
			Unproved: true})
	case behaviour.Fail != "":
		m.endLocked(played, driver.Status{ExitCode: driver.NoExitCode, Error: behaviour.Fail})
	case behaviour.Ends && behaviour.After == 0:
		m.endLocked(played, own)
	case behaviour.Ends:
		time.AfterFunc(behaviour.After, func() { m.end(t.ID, own) })
	}
	if t.Proofs.StopAfter > 0 && played.status.State == driver.Running {
		played.unproved = time.AfterFunc(t.Proofs.StopAfter-played.proof.Since(), func() { m.giveUp(t.ID) })
	}
	return nil
}

// prove puts off the end of a task that wants proofs.
func (m *Machine) prove(id string, at uptime.Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tasks[id]
	if t == nil || t.unproved == nil || at <= t.proof || t.status.State != driver.Running {
		return
	}
	t.proof = at
	if t.unproved.Stop() {
		t.unproved.Reset(t.proofs.StopAfter - at.Since())
	}
}

// giveUp stops a task whose last proof is too old.
func (m *Machine) giveUp(id string) {
	m.mu.Lock()
	t := m.tasks[id]
	if t == nil || t.status.State != driver.Running {
		m.mu.Unlock()
		return
	}
	t.gaveUp = t.kill == nil
	m.mu.Unlock()
	m.stop(id, t.proofs.StopGrace)
}

// own is how the task ends by itself.
func (b Behaviour) own() driver.Status {
	if b.Signal != 0 {
		return bySignal(syscall.Signal(b.Signal))
	}
	return driver.Status{ExitCode: b.ExitCode}
}

// stop asks a task to end, and sees to it that it does.
func (m *Machine) stop(id string, grace time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tasks[id]
	if t == nil || t.status.State != driver.Running {
		return
	}
	switch t.behaviour.Terminated {
	case Dies:
		t.output[driver.Stdout] += t.behaviour.LastWords
		m.endLocked(t, bySignal(syscall.SIGTERM))
	case Exits:
		t.output[driver.Stdout] += t.behaviour.LastWords
		m.endLocked(t, driver.Status{ExitCode: t.behaviour.ExitCode})
	case Ignores:
		if at := time.Now().Add(grace); t.kill == nil || at.Before(t.killAt) {
			if t.kill != nil {
				t.kill.Stop()
			}
			t.killAt = at
			t.kill = time.AfterFunc(grace, func() { m.Kill(id, syscall.SIGKILL) })
		}
	}
}

// find looks for a task, also among the forgotten.
func (m *Machine) find(id string) *task {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tasks[id]; t != nil {
		return t
	}
	return m.forgotten[id]
}

// Driver is a driver over a Machine.
type Driver struct {
	machine *Machine
	changed chan struct{}
}

var _ driver.Driver = (*Driver)(nil)

// Open returns a new driver over the machine, which finds what earlier ones started.
func Open(m *Machine) *Driver {
	d := &Driver{machine: m, changed: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = append(m.changed, d.changed)
	return d
}

// Pull has every image at once.
func (d *Driver) Pull(_ context.Context, image driver.Image, _ func(string)) (resolved string, err error) {
	return image.Name, nil
}

// Start plays t, unless its Behaviour refuses.
func (d *Driver) Start(ctx context.Context, t driver.Task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.machine.start(t)
}

// Stop asks a task to end, and kills it after grace.
func (d *Driver) Stop(id string, grace time.Duration) error {
	d.machine.stop(id, grace)
	return nil
}

// Prove puts off the end of a task that wants proofs.
func (d *Driver) Prove(id string, at uptime.Moment) error {
	d.machine.prove(id, at)
	return nil
}

// FilesFolder returns a path at which nothing is.
func (d *Driver) FilesFolder(id string) string { return "/fake/" + id }

// PrivateFolder returns a path at which nothing is.
func (d *Driver) PrivateFolder(id string) string { return "/fake/" + id + "/private" }

// RenewPrivate replaces what is private of a running task.
func (d *Driver) RenewPrivate(id string, files []driver.File) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	t := d.machine.tasks[id]
	if t == nil || t.status.State != driver.Running || t.private == nil {
		return nil
	}
	for _, file := range files {
		t.private = append(slices.DeleteFunc(t.private, func(f driver.File) bool { return f.Path == file.Path }), file)
	}
	return nil
}

// PrivateOf returns what a task finds in its private folder, by the names of files.
func (m *Machine) PrivateOf(id string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	if t := m.tasks[id]; t != nil {
		for _, file := range t.private {
			all[file.Path] = string(file.Content)
		}
	}
	return all
}

// Renew replaces the files of a running task. No signal is sent: a script has nobody who hears it.
func (d *Driver) Renew(id string, files driver.FileSet, _ syscall.Signal) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	t := d.machine.tasks[id]
	if t == nil || t.status.State != driver.Running || t.status.FilesVersion >= files.Version {
		return nil
	}
	t.files, t.status.FilesVersion = files, files.Version
	d.machine.tell()
	return nil
}

// FilesOf returns the files that a task has.
func (m *Machine) FilesOf(id string) driver.FileSet {
	if t := m.find(id); t != nil {
		return t.files
	}
	return driver.FileSet{}
}

// Tasks lists what was started and not forgotten.
func (d *Driver) Tasks() []driver.Status {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	all := make([]driver.Status, 0, len(d.machine.tasks))
	for _, id := range slices.Sorted(maps.Keys(d.machine.tasks)) {
		all = append(all, d.machine.tasks[id].status)
	}
	return all
}

// Changed receives a value after Tasks changed.
func (d *Driver) Changed() <-chan struct{} { return d.changed }

// Forget drops an ended task; its output stays as long as the machine.
func (d *Driver) Forget(id string) error {
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tasks[id]
	switch {
	case t == nil:
		return nil
	case t.status.State == driver.Running:
		return fmt.Errorf("forget task %q: it is running; stop it first", id)
	}
	delete(m.tasks, id)
	m.forgotten[id] = t
	m.tell()
	return nil
}

// Exec fails, and says why, if the running task's Behaviour wants that.
func (d *Driver) Exec(_ context.Context, t driver.Task, s driver.Session) (exitCode int, err error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	played := d.machine.tasks[t.ID]
	switch {
	case played == nil || played.status.State != driver.Running:
		return driver.NoExitCode, fmt.Errorf("run %q beside task %q: it does not run", t.Command, t.ID)
	case played.behaviour.Beside == nil:
		return 0, nil
	}
	if err := played.behaviour.Beside(t.Command); err != nil {
		_, _ = fmt.Fprintln(s.Errors, err)
		return 1, nil
	}
	return 0, nil
}

// Attach returns an error: a fake session does not go on.
func (d *Driver) Attach(context.Context, string, driver.Session) (exitCode int, err error) {
	return driver.NoExitCode, errors.New("there is no such session")
}

// Sessions are none.
func (d *Driver) Sessions(string) []driver.SessionStatus { return nil }

// Usage has every task keep one processor busy, and a mebibyte.
func (d *Driver) Usage(ids []string) (driver.Usage, error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	usage := driver.Usage{At: time.Now(), Tasks: map[string]driver.Use{}}
	for id, t := range d.machine.tasks {
		if t.status.State != driver.Running {
			continue
		}
		use := driver.Use{CPU: usage.At.Sub(t.status.StartedAt), MemoryBytes: 1 << 20}
		usage.Machine.CPU += use.CPU
		usage.Machine.MemoryBytes += use.MemoryBytes
		if slices.Contains(ids, id) {
			usage.Tasks[id] = use
		}
	}
	return usage, nil
}

// GPUs are none.
func (d *Driver) GPUs(context.Context) []driver.GPUUse { return nil }

// Warnings is empty: a fake lacks nothing.
func (d *Driver) Warnings() []string { return nil }

// Close takes the driver off the machine.
func (d *Driver) Close() error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	d.machine.changed = slices.DeleteFunc(d.machine.changed, func(c chan struct{}) bool { return c == d.changed })
	return nil
}

// Folder returns an error: a fake task has no folder.
func (d *Driver) Folder(string) (*os.Root, error) { return nil, os.ErrNotExist }

// Logs reads what a task has written.
func (d *Driver) Logs(ctx context.Context, id string, o driver.LogOptions) (io.ReadCloser, error) {
	t := d.machine.find(id)
	if t == nil {
		return nil, fmt.Errorf("logs of task %q: %w", id, os.ErrNotExist)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	text := t.output[o.Stream]
	from := 0
	if o.TailBytes >= 0 {
		from = max(0, len(text)-int(min(o.TailBytes, int64(len(text)))))
	}
	if !o.Follow {
		return io.NopCloser(strings.NewReader(text[from:])), nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return &follower{ctx: ctx, cancel: cancel, machine: d.machine, task: t, stream: o.Stream, at: from}, nil
}

// follower reads a task's output while it is written.
type follower struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	machine *Machine
	task    *task
	stream  driver.Stream
	at      int
}

// Read returns what was written, waits for more, and ends with the task.
func (f *follower) Read(into []byte) (int, error) {
	for {
		f.machine.mu.Lock()
		text, ended, grown := f.task.output[f.stream], f.task.status.State == driver.Exited, f.task.grown
		f.machine.mu.Unlock()
		if n := copy(into, text[f.at:]); n > 0 {
			f.at += n
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		select {
		case <-grown:
		case <-f.ctx.Done():
			return 0, context.Cause(f.ctx)
		}
	}
}

// Close ends the reading, also one that waits.
func (f *follower) Close() error {
	f.cancel(os.ErrClosed)
	return nil
}
