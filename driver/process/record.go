package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/assign"
	"starling/driver/cgroup"
	"starling/driver/confine"
	"starling/driver/disk"
	"starling/driver/family"
	"starling/driver/output"
	"starling/driver/plain"
	"starling/driver/runc"
)

// origin says what to clean up if nobody else can.
type origin struct {
	// Boot names the run of the machine.
	Boot string
	// Group is the name of the control group in Place.
	Group string
	Place cgroup.Place
	// Runtime is the program that runs the task's container, empty if it has none; Image is the container's.
	Runtime, Image string
	// Disk says what the task may take of the disk, and Quotas that the file system bounds that where it can.
	Disk   disk.Use
	Quotas bool
}

// bounded are the limits of a task without those of the disk that the file system is not to keep. That of a container
// is for what it changes of its image, too.
func (o *origin) bounded(l driver.Limits) driver.Limits {
	if !o.Quotas || o.Runtime != "" {
		l.DiskBytes = 0
	}
	if !o.Quotas {
		l.VolumesBytes = 0
	}
	return l
}

// assignment is what a supervisor is told on its standard input. It is stored nowhere.
type assignment struct {
	Task   driver.Task
	Folder string
	Group  string
	Place  cgroup.Place
	Bounds output.Bounds
	// Volumes is the folder of all volumes.
	Volumes string
	// Container is what the task runs in; nil for none.
	Container *runc.Container
	// Mounter are the words with which the program in wholeFile mounts the file system of a container.
	Mounter []string
	// Namespaces says that the supervisor was put into namespaces of its own.
	Namespaces bool
	// Quotas is that of the origin. The limits of the disk are here what the file system is to keep.
	Quotas bool
	// Free, Hidden and Covered are those of Config.
	Free    bool
	Hidden  string
	Covered []string
	// Devices are the paths of those that the task was given.
	Devices []string
}

// started tells of a running task.
type started struct {
	Supervisor family.Identity
	Program    family.Identity
	At         time.Time
	// Account is that of a container's program.
	Account *syscall.Credential
	// Warnings lists what could not be done for this task.
	Warnings []string
}

// ended tells how a task ended.
type ended struct {
	ExitCode    int
	Signal      int
	OutOfMemory bool
	OutOfDisk   string
	Unproved    bool
	Lost        bool
	// Stopped tells that it was asked to end.
	Stopped   bool
	Error     string
	NotThere  bool
	StartedAt time.Time
	EndedAt   time.Time
}

func (s started) status(id string) driver.Status {
	return driver.Status{ID: id, State: driver.Running, PID: s.Program.PID, StartedAt: s.At}
}

func (e ended) status(id string) driver.Status {
	return driver.Status{
		ID: id, State: driver.Exited, ExitCode: e.ExitCode, Signal: e.Signal, OutOfMemory: e.OutOfMemory,
		OutOfDisk: e.OutOfDisk, Unproved: e.Unproved, Lost: e.Lost, Error: e.Error, NotThere: e.NotThere,
		StartedAt: e.StartedAt, EndedAt: e.EndedAt,
	}
}

// superviseAll owns one task after another, as long as a driver sends them and nothing of the last one is left.
func superviseAll(mount runc.Mounter) error {
	receiver := assign.NewReceiver()
	var one *family.Family
	var base *confine.Base
	for {
		s := &supervisor{mount: mount, family: one, base: base, released: make(chan struct{}),
			untold: map[syscall.Signal]bool{}}
		files, err := receiver.Receive(&s.task)
		if errors.Is(err, io.EOF) && one != nil { // no other task comes
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the assignment: %w", err)
		}
		if err := s.open(files); err != nil {
			return err
		}
		if one != nil {
			s.base = base.Renew(s.task.Covered)
		}
		if err := s.run(); err != nil || !s.leavesNothing() {
			return err
		}
		if err := s.rest(); err != nil {
			return err
		}
		one, base = s.family, s.base
	}
}

// open takes the files that came with the assignment.
func (s *supervisor) open(files []int) error {
	if len(files) <= wordsFile {
		return fmt.Errorf("%d files came with the assignment, which is of another program", len(files))
	}
	s.folder = folder(s.task.Folder)
	_ = syscall.SetNonblock(files[ordersFile], true) // so that Close ends a blocked Read
	s.alive = os.NewFile(uintptr(files[aliveFile]), s.folder.alive())
	s.orders = os.NewFile(uintptr(files[ordersFile]), s.folder.orders())
	if len(files) > wholeFile {
		s.whole = os.NewFile(uintptr(files[wholeFile]), filepath.Join(openFilesFolder, strconv.Itoa(files[wholeFile])))
	}
	words := os.NewFile(uintptr(files[wordsFile]), s.folder.words())
	defer words.Close()
	return speakTo(words)
}

// leavesNothing tells whether the task has left nothing in this process or its namespaces that another could find: one
// of root may have changed its limits, and one that is not confined anything.
func (s *supervisor) leavesNothing() bool {
	isApart := s.task.Namespaces && !s.task.Free && s.task.Container == nil
	isUser := s.account != nil && s.account.Uid != 0
	// What runs beside the task starts in its control group, so that nothing can come when that is deleted.
	isDeleted := s.over && s.task.Place.Version > 0 && !s.left
	return isApart && isUser && isDeleted && s.family.IsAlone()
}

// rest tells the driver that this process waits for another task.
func (s *supervisor) rest() error {
	null, err := plain.Open(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if err := speakTo(null); err != nil {
		return err
	}
	_, err = s.alive.WriteString(idleLine)
	return errors.Join(err, s.alive.Close())
}

// speakTo has the standard output and error of this process be a file.
func speakTo(file *os.File) error {
	return errors.Join(dup(int(file.Fd()), syscall.Stdout), dup(int(file.Fd()), syscall.Stderr))
}
