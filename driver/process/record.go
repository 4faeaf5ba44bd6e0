package process

import (
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/cgroup"
	"starling/driver/disk"
	"starling/driver/output"
	"starling/driver/runc"
)

// identity names one process for good: its number may be another's later, but not with the same start.
type identity struct {
	PID   int
	Start string
}

// origin says what to clean up if nobody else can.
type origin struct {
	// Boot names the run of the machine.
	Boot string
	// Group is the name of the control group in Place.
	Group string
	Place cgroup.Place
	// Runtime is the program that runs the task's container, empty if it has none; Image is the container's.
	Runtime, Image string
	// Disk says what the task may take of the disk.
	Disk disk.Use
}

// assignment is what a supervisor is told on its standard input. It is stored nowhere.
type assignment struct {
	Task   driver.Task
	Group  string
	Place  cgroup.Place
	Bounds output.Bounds
	// Volumes is the folder of all volumes.
	Volumes string
	// Container is what the task runs in; nil for none.
	Container *runc.Container
	// Namespaces says that the supervisor was put into namespaces of its own.
	Namespaces bool
	// Free, Hidden and Covered are those of Config.
	Free    bool
	Hidden  string
	Covered []string
	// Devices are the paths of those that the task was given.
	Devices []string
}

// started tells of a running task.
type started struct {
	Supervisor identity
	Program    identity
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
