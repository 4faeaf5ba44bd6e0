package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/family"
	"starling/driver/record"
)

// What is told of a task that nobody saw end.
const (
	supervisorKilled = "the supervisor was killed"
	machineRestarted = "the machine restarted"
)

// load reads how far the task is from its folder; false if nothing confirms it.
func (d *Driver) load(t *task) bool {
	var end ended
	if ok, err := t.folder.read(endedRecord, &end); ok && err == nil {
		d.set(t, end.status(t.id), nil)
		return true
	}
	var record started
	if ok, err := t.folder.read(startedRecord, &record); ok && err == nil {
		d.set(t, record.status(t.id), record.Warnings)
		return true
	}
	return false
}

// set changes the status and tells.
func (d *Driver) set(t *task, s driver.Status, warnings []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.status.State == driver.Exited {
		return
	}
	t.status = s
	for _, line := range warnings {
		d.warn(line)
	}
	if s.State == driver.Exited {
		close(t.ended)
	}
	d.tell()
}

// settle watches the supervisor of a task that was loaded, until it or the driver has ended.
func (d *Driver) settle(t *task, alive *bufio.Reader) {
	d.watching.Go(func() {
		if idle, err := awaitEnd(alive); errors.Is(err, io.EOF) && d.closing.Err() == nil {
			d.finish(t, idle && t.owner != nil)
		} else if t.owner != nil {
			_ = t.owner.Line.Close() // it ends with its task
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		t.alive.Close()
	})
}

// finish finds out how a task ended that its supervisor does not own any more: it has ended, or waits for another task.
func (d *Driver) finish(t *task, idle bool) {
	var record started
	switch {
	case idle:
		defer d.idle.Put(t.owner)
	case t.owner != nil:
		t.owner.Wait()
	default:
		_, _ = t.folder.read(startedRecord, &record)
		d.awaitGone(record.Supervisor)
	}
	if d.load(t); !d.running(t) {
		return
	}
	_, _ = t.folder.read(startedRecord, &record)
	if d.clean(t, record) {
		d.lose(t, supervisorKilled, record.At)
	}
}

func (d *Driver) running(t *task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.status.State != driver.Exited
}

// lose makes the task one whose end is not known.
func (d *Driver) lose(t *task, why string, startedAt time.Time) {
	end := ended{Lost: true, ExitCode: driver.NoExitCode, Error: why, StartedAt: startedAt, EndedAt: time.Now()}
	_ = t.folder.writeDurably(endedRecord, end) // a later driver that does not find it comes to the same
	d.set(t, end.status(t.id), nil)
}

// awaitGone does what Owner.Wait does for the supervisor that an earlier driver started.
func (d *Driver) awaitGone(supervisor family.Identity) {
	if supervisor.PID == 0 {
		return
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for family.Lives(supervisor) {
		select {
		case <-tick.C:
		case <-d.closing.Done():
			return
		}
	}
	// The earlier driver may have been this process's.
	_, _ = syscall.Wait4(supervisor.PID, nil, syscall.WNOHANG, nil)
}

// clean ends what a killed supervisor may have left. It returns when nothing runs any more, or false when the driver is
// closed before that.
func (d *Driver) clean(t *task, record started) bool {
	group := t.origin.Place.Open(t.origin.Group)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		// The first process dies with its supervisor; while others of its group live, the number is not used again.
		if p := record.Program; p.PID > 0 && (family.Lives(p) || !exists(p.PID)) {
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		}
		left, err := group.Kill()
		if err == nil && left == 0 && (record.Program.PID == 0 || !family.Lives(record.Program)) {
			d.complain(t, group.Delete())
			return true
		}
		d.complain(t, err)
		select {
		case <-tick.C:
		case <-d.closing.Done():
			return false
		}
	}
}

// writers lists what runs, with what it may take of the disk.
func (d *Driver) writers() (all []disk.Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tasks {
		if t.status.State == driver.Running {
			all = append(all, disk.Task{ID: t.id, Use: t.origin.Disk, Folder: t.folder.work()})
		}
	}
	return all
}

// endFiller ends a task that is out of disk. A supervisor of an earlier program understands only the second order.
func (d *Driver) endFiller(id, why string) {
	if err := errors.Join(d.order(id, diskOrder, why), d.Stop(id, 0)); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warn(fmt.Sprintf("end task %q, which is out of disk: %v", id, err))
	}
}

// complain makes an error that only a person can do something about a warning.
func (d *Driver) complain(t *task, err error) {
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warn(fmt.Sprintf("task %q: %v", t.id, err))
	}
}

// exists tells whether a process has that number.
func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// abandon removes all traces of a task that nothing confirms.
func (d *Driver) abandon(t *task) error {
	if t.owner != nil {
		t.owner.End()
	}
	d.mu.Lock()
	if t.alive != nil {
		t.alive.Close()
	}
	d.mu.Unlock()
	var record started
	_, _ = t.folder.read(startedRecord, &record)
	if !d.clean(t, record) {
		return errClosed
	}
	return d.remove(t)
}

// adopt finds the tasks of earlier drivers.
func (d *Driver) adopt() error {
	entries, err := os.ReadDir(d.tasksDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		at := folder(filepath.Join(d.tasksDir(), entry.Name()))
		id, err := record.IDOf(string(at))
		if errors.Is(err, record.ErrNoID) { // no supervisor was started: the ID comes first
			if err := os.RemoveAll(string(at)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			d.warn(fmt.Sprintf("in %s there is %q, which no driver made: %v", d.tasksDir(), entry.Name(), err))
			continue
		}
		t := newTask(id, at)
		if err := d.adoptTask(t); err != nil {
			return fmt.Errorf("adopt task %q: %w", id, err)
		}
	}
	return nil
}

// adoptTask takes over one task, or deletes its folder if nothing of it can have begun.
func (d *Driver) adoptTask(t *task) error {
	close(t.settled)
	if _, err := t.folder.read(filesRecord, &t.files); err != nil {
		return err
	}
	if _, err := t.folder.read(originRecord, &t.origin); err != nil {
		return err
	}
	if t.origin.Boot != d.boot {
		return d.adoptRestarted(t)
	}
	if d.load(t) && t.status.State == driver.Exited {
		d.tasks[t.id] = t
		return nil
	}
	if err := d.openAlive(t); err != nil {
		return err
	}
	alive := bufio.NewReader(t.alive)
	if t.status.State == 0 && awaitStarted(alive) && !d.load(t) {
		return fmt.Errorf("the records in %s cannot be read although its supervisor lives", t.folder)
	}
	if t.status.State == 0 && !d.load(t) {
		return d.adoptUnrecorded(t)
	}
	d.tasks[t.id] = t
	d.settle(t, alive)
	return nil
}

// adoptUnrecorded takes over a task whose supervisor was killed before it could record that the program runs: if it had
// its assignment the program may have begun, and is not to begin twice.
func (d *Driver) adoptUnrecorded(t *task) error {
	at, reserved := t.folder.reserved()
	if !reserved {
		return d.abandon(t)
	}
	if !d.clean(t, started{}) {
		return errClosed
	}
	d.lose(t, supervisorKilled, at)
	d.tasks[t.id] = t
	return nil
}

// adoptRestarted takes over a task from before the machine restarted: nothing of it can run. Its origin.json may be
// lost with that, and then the run of the machine has no name; but while the machine runs it is there before a
// supervisor is.
func (d *Driver) adoptRestarted(t *task) error {
	at, reserved := t.folder.reserved()
	switch known := d.load(t); {
	case !known && !reserved:
		return d.remove(t)
	case !known:
		d.lose(t, machineRestarted, at)
	case t.status.State == driver.Running:
		d.lose(t, machineRestarted, t.status.StartedAt)
	}
	d.tasks[t.id] = t
	return nil
}
