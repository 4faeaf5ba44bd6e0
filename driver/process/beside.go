package process

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/beside"
	"starling/driver/cgroup"
	"starling/driver/confine"
	"starling/driver/device"
	"starling/driver/family"
	"starling/driver/meter"
	"starling/driver/program"
	"starling/driver/volume"
)

// Exec runs a program beside a running task: in its control group, and with no new privileges either.
func (d *Driver) Exec(ctx context.Context, t driver.Task, s driver.Session) (exitCode int, err error) {
	known, status := d.status(t.ID)
	if known == nil || status.State != driver.Running {
		return driver.NoExitCode, fmt.Errorf("run %q beside task %q: it does not run", t.Command, t.ID)
	}
	if len(t.Command) == 0 {
		return driver.NoExitCode, fmt.Errorf("run a program beside task %q: no program is named", t.ID)
	}
	if s.Name != "" && s.Terminal != nil {
		return d.execKept(ctx, known, t, s)
	}
	return d.execHere(ctx, known, t, s)
}

// execHere runs a program beside a running task as a child of this process.
func (d *Driver) execHere(ctx context.Context, known *task, t driver.Task, s driver.Session) (exitCode int, err error) {
	inside := d.execBeside
	if known.origin.Runtime != "" {
		inside = d.execInContainer
		if !known.origin.Quotas { // nothing is set on the thread
			return inside(ctx, known, t, s)
		}
	}
	done := make(chan struct{})
	d.watching.Go(func() {
		defer close(done)
		// What is set on this thread the program inherits; the thread ends with this goroutine.
		runtime.LockOSThread()
		exitCode, err = inside(ctx, known, t, s)
	})
	<-done
	return exitCode, err
}

func (d *Driver) execBeside(ctx context.Context, known *task, t driver.Task, s driver.Session) (int, error) {
	program, err := d.programBeside(ctx, known, t, s)
	if err != nil {
		return driver.NoExitCode, err
	}
	defer program.Close()
	program.Started()
	return program.Finish(ctx)
}

// programBeside starts the program.
func (d *Driver) programBeside(ctx context.Context, known *task, t driver.Task,
	s driver.Session) (*beside.Program, error) {
	account, err := program.Credential(t.User)
	if err != nil {
		return nil, err
	}
	folder := t.WorkDir
	if folder == "" {
		folder = known.folder.work()
	}
	d.give(&t)
	if t.Env, err = volume.MakeAll(d.Dir, t, account); err != nil {
		return nil, err
	}
	path, err := program.Find(t, folder)
	if err != nil {
		return nil, err
	}
	joined, err := d.joinTask(known)
	if err != nil {
		return nil, err
	}
	program, err := beside.New(ctx, []string{path}, s, account)
	if err != nil {
		return nil, err
	}
	program.Args, program.Env, program.Dir = t.Command, slices.Concat(t.Env, s.Env), folder
	if err = d.confineBeside(joined, known); err == nil {
		err = known.origin.Place.Open(known.origin.Group).Start(func(a *syscall.SysProcAttr) error {
			a.Setsid, a.Setctty, a.Credential = true, program.SysProcAttr.Setctty, account
			if !joined { // in other namespaces it does not see its parent; it ends with the task at the latest
				(&family.Family{}).Prepare(a, nil)
			}
			program.SysProcAttr = a
			return program.Start()
		})
	}
	if err != nil {
		program.Close()
		return nil, err
	}
	return program, nil
}

// joinTask puts this thread into the namespaces of a task, and tells whether it has any.
func (d *Driver) joinTask(known *task) (joined bool, err error) {
	d.mu.Lock()
	joined = d.namespaces && !d.config.Free
	d.mu.Unlock()
	if !joined {
		return false, nil
	}
	var record started
	if ok, err := known.folder.read(startedRecord, &record); !ok || err != nil {
		return false, errors.Join(errors.New("its records cannot be read"), err)
	}
	if err := confine.Join(record.Program.PID); err != nil {
		return false, fmt.Errorf("join its namespaces: %w", err)
	}
	return true, nil
}

// confineBeside confines this thread as the task is.
func (d *Driver) confineBeside(joined bool, known *task) error {
	if d.config.Free {
		return family.NoNewPrivileges()
	}
	rules := confine.Rules{Clone3: d.place.Version == 2, Quotas: known.origin.Quotas}
	return rules.Beside(joined)
}

// Usage reads what the machine uses, and those of these tasks that run: what the control group of a task does not count
// is that of its processes.
func (d *Driver) Usage(ids []string) (driver.Usage, error) {
	machine, err := meter.Machine("/")
	usage := driver.Usage{At: time.Now(), Machine: machine, Tasks: map[string]driver.Use{}}
	for _, id := range ids {
		if t, status := d.status(id); t != nil && status.State == driver.Running {
			usage.Tasks[id] = t.use()
		}
	}
	return usage, err
}

func (t *task) use() driver.Use {
	group := t.origin.Place.Open(t.origin.Group)
	use, counted := group.Use()
	if counted == (cgroup.Counted{CPU: true, Memory: true, IO: true}) {
		return use
	}
	processes := group.Processes()
	if len(processes) == 0 {
		var record started
		_, _ = t.folder.read(startedRecord, &record) // none if the task has just ended
		processes = meter.Below(record.Supervisor.PID)
	}
	rest := meter.Of(processes)
	if !counted.CPU {
		use.CPU = rest.CPU
	}
	if !counted.Memory {
		use.MemoryBytes = rest.MemoryBytes
	}
	if !counted.IO {
		use.ReadBytes, use.WrittenBytes = rest.ReadBytes, rest.WrittenBytes
	}
	return use
}

// GPUs reads what is used of the machine's GPUs.
func (d *Driver) GPUs(ctx context.Context) []driver.GPUUse { return device.Use(ctx, d.config.GPUs) }
