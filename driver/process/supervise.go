package process

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/cgroup"
	"starling/driver/confine"
	"starling/driver/family"
	"starling/driver/lock"
	"starling/driver/output"
	"starling/driver/plain"
	"starling/driver/program"
	"starling/driver/runc"
	"starling/driver/uptime"
	"starling/driver/volume"
)

// The files that come with an assignment; for a container the last is the whole program.
const (
	aliveFile = iota
	ordersFile
	wordsFile
	wholeFile
)

// startedLine is what a supervisor writes to alive when started.json or ended.json is durable.
const startedLine = "started\n"

// idleLine is the last that one writes there which waits for another task: nothing of this one is left.
const idleLine = "idle\n"

// drainMax is how long output may still come after the last process has ended: only somebody outside the task can then
// hold its pipes.
const drainMax = time.Second

// settledAfter is how long a task runs before its supervisor gives back what memory the start took. Many end sooner.
const settledAfter = 2 * time.Second

// beginning is how long a program has at least before it is sent signals which end one that does not expect them, and
// how often to look whether it does: of one whose runtime answers all at first nothing tells.
const beginning = time.Second

// recordAgain is how long a supervisor waits before it tries again to record the end of its task.
const recordAgain = time.Second

// Supervise owns a task until it has ended, and then perhaps another. It is the whole life of a supervisor process,
// which a driver starts as Config.Small says, and returns its exit code. Without a Mounter it has the whole program,
// which calls this function, too, mount what containers need.
func Supervise(dir string, mount runc.Mounter) int {
	// The machine's shutdown tells all processes to end. The task does that by itself, and somebody must see how.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if filepath.Base(filepath.Dir(dir)) == sessionsFolder {
		return keepSession(dir)
	}
	asked, err := runc.MountFor(dir, os.Stdin, mount)
	if !asked {
		err = superviseAll(mount)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// supervisor owns one task.
type supervisor struct {
	folder folder
	mount  runc.Mounter
	alive  *os.File
	orders *os.File
	whole  *os.File // for a container, the program that mounts
	task   assignment
	// released is closed when the thread that forked the first process may end.
	released chan struct{}
	left     bool // its control group could not be deleted
	family   *family.Family
	base     *confine.Base // for one task after another
	group    *cgroup.Group
	begun    time.Time
	pid      int // of the first process, as this one sees it
	first    family.Identity
	// account is that of a container's program.
	account *syscall.Credential

	outputs sync.WaitGroup
	pipes   []*os.File

	killing sync.Mutex
	over    bool // under killing: nothing of it runs any more, and what runs is another's

	mu       sync.Mutex
	gone     bool // the first process was reaped, its number may be another's
	asked    bool // SIGTERM was sent
	killer   *time.Timer
	killAt   time.Time
	noMemory bool
	noDisk   string
	proof    uptime.Moment // the last
	unproved bool          // it was stopped because that was too old
	deserted time.Duration // it was stopped because for so long no driver was there
	untold   map[syscall.Signal]bool
}

func (s *supervisor) run() error {
	defer close(s.released)
	if err := s.folder.reserve(); err != nil {
		return fmt.Errorf("set room aside for how the task ends: %w", err)
	}
	s.begun, s.proof = time.Now(), s.task.Task.Proofs.First
	record, err := s.start()
	if err != nil {
		end := ended{ExitCode: driver.NoExitCode, Error: err.Error(), StartedAt: s.begun, EndedAt: time.Now()}
		end.Unproved, end.NotThere = errors.Is(err, errUnproved), program.IsMissing(err)
		return errors.Join(s.discard(), s.folder.writeDurably(endedRecord, end), s.acknowledge())
	}
	if err := s.folder.writeDurably(startedRecord, record); err != nil {
		s.kill()
		s.reap()
		return errors.Join(err, s.discard())
	}
	if err := s.acknowledge(); err != nil {
		fmt.Fprintln(os.Stderr, err) // who does not hear it reads started.json
	}
	settled := time.AfterFunc(settledAfter, debug.FreeOSMemory) // there is little to do, perhaps for years
	defer settled.Stop()
	s.record(s.supervise())
	return nil
}

// acknowledge tells the driver that the task is owned and will be found.
func (s *supervisor) acknowledge() error {
	_, err := s.alive.WriteString(startedLine)
	return err
}

// discard deletes the control group, if there is one.
func (s *supervisor) discard() error {
	if s.group == nil {
		return nil
	}
	return s.group.Delete()
}

// start starts the program. An error means that nothing of it runs.
func (s *supervisor) start() (started, error) {
	var record started
	var err error
	if s.family == nil {
		if s.family, record.Warnings, err = family.New(s.task.Namespaces); err != nil {
			return started{}, err
		}
		if s.task.Container == nil { // runc is started elsewhere
			s.family.Relax()
		}
	}
	if record.Supervisor, err = s.family.Self(); err != nil {
		return started{}, err
	}
	pidfd := -1
	if s.task.Container != nil {
		runtime.LockOSThread() // runc, too, is to be forked by a thread that does not end
		err = s.launchContainer(&pidfd)
	} else if s.group, err = s.task.Place.Make(s.task.Group, s.task.Task.Limits); err == nil {
		err = s.launch(&pidfd)
	}
	if err != nil {
		return started{}, err
	}
	if s.first, err = s.family.Identify(s.pid, pidfd); err != nil {
		s.kill()
		s.reap()
		return started{}, fmt.Errorf("find the program that was started: %w", err)
	}
	record.At, record.Program, record.Account = s.begun, s.first, s.account
	return record, nil
}

// launch forks and executes the program, and begins to copy its output.
func (s *supervisor) launch(pidfd *int) error {
	task := s.task.Task
	account, err := program.Credential(task.User)
	if err != nil {
		return err
	}
	s.account = account
	folder, err := workDir(s.folder, task, account)
	if err != nil {
		return err
	}
	if task.Env, err = volume.MakeAll(s.task.Volumes, task, account); err == nil {
		sayUnbounded(volume.Bound(s.task.Volumes, task.Volumes, task.Limits.VolumesBytes))
		err = volume.GiveAll(task.Reads, account)
	}
	if err != nil {
		return err
	}
	task.Env = program.WithHome(task.Env, task.User, s.folder.work())
	path, err := program.Find(task, folder)
	if err != nil {
		return err
	}
	files, err := s.openFiles()
	if err != nil {
		return err
	}
	defer closeAll(files)
	if task.Proofs.TooOld(s.proof) {
		return errUnproved
	}
	attributes := &syscall.ProcAttr{Dir: folder, Env: task.Env}
	for _, file := range files {
		attributes.Files = append(attributes.Files, file.Fd())
	}
	err = s.confined(func() error {
		return s.group.Start(func(a *syscall.SysProcAttr) error {
			a.Setsid, a.Credential, attributes.Sys = true, account, a
			s.family.Prepare(a, pidfd)
			s.pid, _, err = syscall.StartProcess(path, task.Command, attributes)
			return err
		})
	})
	if err == nil && task.Limits.MemoryBytes > 0 && !s.task.Place.EnforcesMemory() {
		err = family.BoundMemory(s.pid, task.Limits.MemoryBytes)
	}
	if err != nil {
		if s.pid > 0 {
			s.kill()
			s.reap()
		}
		return fmt.Errorf("start %q in %q: %w", path, folder, err)
	}
	return nil
}

// confined does the work on a thread that is confined as the task is to be. The program is killed when the thread that
// forked it ends, so this one stays until the task has ended.
func (s *supervisor) confined(work func() error) error {
	done := make(chan error)
	go family.OnThreadThatEnds(func() {
		err := s.confine()
		if err == nil {
			err = work()
		}
		done <- err
		<-s.released
	})
	return <-done
}

// confine confines this thread, unless the peer wants its tasks free.
func (s *supervisor) confine() error {
	if s.task.Free {
		return family.NoNewPrivileges()
	}
	rules := confine.Rules{Hidden: s.task.Hidden, Shown: []confine.Folder{{Path: string(s.folder)}},
		Covered: s.task.Covered, Devices: s.task.Devices, Base: s.base, Clone3: s.task.Place.Version == 2,
		Quotas: s.task.Quotas}
	for _, path := range s.task.Task.Reads {
		rules.Shown = append(rules.Shown, confine.Folder{Path: path, ReadOnly: true})
	}
	var err error
	if rules.Accounts, err = program.Accounts(s.task.Task.User, s.folder.work()); err != nil {
		return err
	}
	for _, v := range s.task.Task.Volumes {
		path, err := volume.Path(s.task.Volumes, v)
		if err != nil {
			return err
		}
		rules.Shown = append(rules.Shown, confine.Folder{Path: path, ReadOnly: v.ReadOnly})
	}
	for _, h := range s.task.Task.HostPaths {
		rules.Folders = append(rules.Folders, confine.Folder{Path: h.Path, ReadOnly: h.ReadOnly})
	}
	return rules.Thread(s.task.Namespaces)
}

// openFiles returns the program's standard files, and begins to copy what comes out of them.
func (s *supervisor) openFiles() ([]*os.File, error) {
	null, err := plain.Open(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	files := []*os.File{null}
	for _, stream := range []driver.Stream{driver.Stdout, driver.Stderr} {
		read, write, err := pipe()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files, s.pipes = append(files, write), append(s.pipes, read)
		s.outputs.Go(func() {
			kept := output.NewWriter(string(s.folder), streamName(stream), s.task.Bounds)
			kept.Copy(read) // ends with the pipe or its deadline
			kept.Close()
			read.Close()
		})
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// supervise returns how the task ended, when nothing of it runs any more and all its output is kept.
func (s *supervisor) supervise() ended {
	var watching sync.WaitGroup
	watching.Go(s.obey)
	alarm, err := s.group.MemoryAlarm()
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // a process that is killed for want of memory then does not end the whole task
	}
	if alarm != nil {
		watching.Go(func() { s.awaitMemoryAlarm(alarm) })
	}

	over := make(chan struct{})
	watching.Go(func() { s.demandProofs(over) })
	watching.Go(func() { s.demandDriver(over) })

	status := s.reap()
	close(over)
	s.orders.Close()
	for _, pipe := range s.pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(drainMax))
	}
	s.outputs.Wait()
	kills, err := s.group.MemoryKills()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if alarm != nil {
		alarm.Close()
	}
	watching.Wait()
	s.finish()
	end := ended{ExitCode: status.ExitStatus(), OutOfMemory: s.noMemory || kills > 0,
		OutOfDisk: s.noDisk, Unproved: s.unproved, Stopped: s.asked, StartedAt: s.begun, EndedAt: time.Now()}
	if status.Signaled() {
		end.Signal = int(status.Signal())
		end.ExitCode = 128 + end.Signal
	}
	if s.deserted > 0 {
		end.Unproved, end.Error = true, fmt.Sprintf("it was stopped because no agent was there for %s", s.deserted)
	}
	if err := s.discard(); err != nil {
		s.left = true
		fmt.Fprintln(os.Stderr, err)
	}
	return end
}

// reap returns the status of the first process after the end of all.
func (s *supervisor) reap() syscall.WaitStatus {
	var first syscall.WaitStatus
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // no children are left
			return first
		case pid == s.pid:
			first = status
			s.mu.Lock()
			s.gone = true
			if s.killer != nil {
				s.killer.Stop()
			}
			s.mu.Unlock()
			_ = syscall.Kill(-s.pid, syscall.SIGKILL)
		}
		if s.gone { // only this goroutine sets it
			s.kill()
		}
	}
}

// finish has a timer that is late kill nothing: the next task may be there by then.
func (s *supervisor) finish() {
	s.killing.Lock()
	defer s.killing.Unlock()
	s.over = true
}

// kill sends SIGKILL to all of the task.
func (s *supervisor) kill() {
	s.killing.Lock()
	defer s.killing.Unlock()
	if s.over {
		return
	}
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	if !gone {
		_ = syscall.Kill(-s.pid, syscall.SIGKILL)
	}
	if s.family.Kill() {
		return // nobody is left who could be in the group
	}
	if _, err := s.group.Kill(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// awaitMemoryAlarm ends the whole task when it is out of memory: the limit is the task's, not one process's.
func (s *supervisor) awaitMemoryAlarm(alarm *os.File) {
	if _, err := alarm.Read(make([]byte, 8)); err != nil {
		return
	}
	s.mu.Lock()
	s.noMemory = !s.gone
	s.mu.Unlock()
	s.kill()
}

// endFiller ends the whole task because it is out of disk.
func (s *supervisor) endFiller(why string) {
	s.mu.Lock()
	if !s.gone {
		s.noDisk = why
	}
	s.mu.Unlock()
	s.kill()
}

// The lines with which a driver orders to stop within a grace, tells that the task was wanted at a moment, and has a
// signal sent to its first process; the last kills the task, which is out of disk, and says how.
const (
	stopOrder   = "stop %d\n"
	proveOrder  = "prove %d\n"
	signalOrder = "signal %d\n"
	diskOrder   = "disk %q\n"
)

// obey carries out the driver's orders until the task has ended.
func (s *supervisor) obey() {
	lines := bufio.NewScanner(s.orders)
	for lines.Scan() {
		var grace time.Duration
		var proof uptime.Moment
		var number int
		line := lines.Text() + "\n"
		if _, err := fmt.Sscanf(line, stopOrder, &grace); err == nil {
			s.stop(grace)
			continue
		}
		if _, err := fmt.Sscanf(line, signalOrder, &number); err == nil {
			s.notify(syscall.Signal(number))
			continue
		}
		var why string
		if _, err := fmt.Sscanf(line, diskOrder, &why); err == nil {
			s.endFiller(why)
			continue
		}
		if _, err := fmt.Sscanf(line, proveOrder, &proof); err != nil {
			fmt.Fprintf(os.Stderr, "an order that is not understood: %q\n", lines.Text())
			continue
		}
		s.mu.Lock()
		s.proof = max(s.proof, proof)
		s.mu.Unlock()
	}
}

// notify sends a signal that something changed to the first process, when that has said what it does about it.
func (s *supervisor) notify(which syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.untold[which] {
		s.untold[which] = true
		s.notifyAfter(time.Until(s.begun.Add(beginning)), which)
	}
}

func (s *supervisor) notifyAfter(wait time.Duration, which syscall.Signal) {
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.gone && !s.family.Heeds(s.first, which) {
			s.notifyAfter(beginning, which)
			return
		}
		if delete(s.untold, which); !s.gone {
			_ = syscall.Kill(s.pid, which)
		}
	})
}

// errUnproved is why a task is not started whose start came too late.
var errUnproved = errors.New("the proof that it is wanted was too old")

// proofsLook is how often, at least, the age of the last proof is looked at. A timer for the whole time would stop
// while the machine sleeps.
const proofsLook = 500 * time.Millisecond

// demandProofs stops the task when its last proof is too old.
func (s *supervisor) demandProofs(over <-chan struct{}) {
	proofs := s.task.Task.Proofs
	if proofs.StopAfter <= 0 {
		return
	}
	look := time.NewTicker(max(min(proofsLook, proofs.StopAfter/10), time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-over:
			return
		case <-look.C:
		}
		s.mu.Lock()
		tooOld := proofs.TooOld(s.proof)
		s.unproved = s.unproved || tooOld && !s.asked && !s.gone
		s.mu.Unlock()
		if tooOld {
			s.stop(proofs.StopGrace)
			return
		}
	}
}

// demandDriver stops the task when no driver has been there for as long as the last one has said: a peer that does not
// come back leaves nothing behind that runs, for others run it by then.
func (s *supervisor) demandDriver(over <-chan struct{}) {
	deserted := lock.Deserted(filepath.Join(string(s.folder), "..", ".."), over)
	if deserted == 0 {
		return
	}
	s.mu.Lock()
	if !s.asked && !s.gone {
		s.deserted = deserted
	}
	s.mu.Unlock()
	s.stop(s.task.Task.Proofs.StopGrace)
}

// stopSignal is what asks the task to end.
func (s *supervisor) stopSignal() syscall.Signal {
	var ofImage syscall.Signal
	if s.task.Container != nil {
		ofImage = s.task.Container.StopSignal
	}
	return cmp.Or(s.task.Task.StopSignal, ofImage, syscall.SIGTERM)
}

// stop asks the task to end and kills it after grace, unless an earlier order kills it sooner.
func (s *supervisor) stop(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if !s.asked {
		s.asked = true
		_ = syscall.Kill(-s.pid, s.stopSignal())
	}
	at := time.Now().Add(grace)
	if s.killer != nil && !at.Before(s.killAt) {
		return
	}
	if s.killer != nil {
		s.killer.Stop()
	}
	s.killAt = at
	s.killer = time.AfterFunc(grace, s.kill)
}

// record stores the end of the task and does not give up before it could, unless the folder is gone.
func (s *supervisor) record(end ended) {
	for {
		err := s.folder.fill(endedRecord, end)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(recordAgain)
	}
}
