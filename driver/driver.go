// Package driver is running a task on this machine as a port.
//
// A driver knows nothing of the cluster's value: it is told what to start and what to stop, and tells what it
// has. What it has outlives the peer's process: a new driver over the same folder finds it again. It reports
// levels (Tasks), never edges: a lost notification is harmless.
package driver

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"starling/driver/uptime"
)

// State is how far a task is.
type State uint8

// The states, in the only order in which they follow each other.
const (
	// Running means that the program was started and has not ended.
	Running State = iota + 1
	// Exited means that it ended, or never could be started (then Error says why). Nothing of the task runs any more:
	// what its first process leaves behind is killed before this state shows.
	Exited
)

// Task is one allocation, ready to run.
type Task struct {
	// ID names the allocation; it is never used again for another. Example: "web.server[2]#4711". Of tasks whose IDs are
	// alike up to the first dot only so many folders are kept when they fail.
	ID string
	// Container is what it runs in; nil for a process of the machine.
	Container *Container
	// Command is the program and its arguments. A program without a slash is looked up in the PATH of Env; one with
	// a slash is a path, relative to WorkDir unless it is absolute. In a container it takes the place of the image's
	// entrypoint and arguments, unless it is empty.
	Command []string
	// Env is the whole environment, "KEY=value"; nothing is inherited, but in a container what the image sets.
	Env []string
	// WorkDir is the working directory; empty means that of the image, or else a fresh folder of the allocation's own,
	// which is deleted by Forget.
	WorkDir string
	// User is the account to run as; empty means the peer's own. In a container it is one of the image's, by name or
	// number, with a group behind a colon or without, and empty means the one that the image names.
	User string
	// Limits are upper bounds; zero means no bound. They are enforced where the machine can (see Warnings).
	Limits Limits
	// Volumes are folders that outlive the task.
	Volumes []Volume
	// HostPaths are folders of this machine that it uses.
	HostPaths []HostPath
	// Reads are folders of this machine, beside its volumes, that it is to find where they are: links in its volumes
	// lead there. Start gives them to its account, which can change nothing there where the machine can mount for it.
	Reads []string
	// Devices are those that it was given. Of GPUs it finds no others, where the machine can (see Warnings), and its
	// environment names them, unless that does so already.
	Devices []Device
	// Files are what it finds in its FilesFolder; nil for no folder.
	Files *FileSet
	// Private are what it finds in its PrivateFolder, which only its account may read; nil for no folder.
	Private []File
	// Proofs say how long the task may run without being proved wanted; zero means for ever.
	Proofs Proofs
	// StopSignal is what asks the task to end; 0 for what the image of its container names, or else SIGTERM.
	StopSignal syscall.Signal
}

// Device is one of this machine's devices.
type Device struct {
	Kind   string
	Number uint32
}

// Image is an image that a task needs.
type Image struct {
	// Name is its name in a registry, with a tag or a digest; Task is the task's ID.
	Name, Task string
}

// Container says in which container a task runs.
type Container struct {
	// Image is its name in a registry, with a tag or, as Pull returns it, a digest.
	Image string
	// Arguments take the place of the image's, unless there are none.
	Arguments []string
	// ReadOnly leaves no file of the image to be changed.
	ReadOnly bool
	// Capabilities are those that it has beside the usual ones: "NET_ADMIN".
	Capabilities []string
	// Mounts are folders that it finds at paths.
	Mounts []Mount
	// Links are symbolic links, in place of what the image has there.
	Links []Link
}

// Link is a symbolic link of a container.
type Link struct{ Path, Target string }

// Mount is a folder at a path of a container: of the machine, a volume or host path of the task, or else an empty one
// in memory.
type Mount struct {
	// Path is where the container has it.
	Path string
	// Folder is one of the machine, Volume the name of one of the task's volumes or host paths. At most one of them is
	// set.
	Folder, Volume string
	// ReadOnly leaves nothing to be changed there.
	ReadOnly bool
}

// Volume is a folder of this machine that outlives the tasks that use it. It is made empty, of the account that the
// task runs as, for the first of them.
type Volume struct {
	// Set and Name say which; the volumes of a set are deleted together.
	Set, Name string
	// Variable is what the environment calls the folder's path, as the task sees it.
	Variable string
	// ReadOnly leaves the task nothing to be changed there, where the machine can mount for it.
	ReadOnly bool
}

// HostPath is a folder that a machine's owner offers by a name.
type HostPath struct {
	Name string
	// Path is where it lies, without symbolic links; "" if this machine does not offer it, so that no task starts that
	// uses it.
	Path string
	// ReadOnly leaves nothing to be changed there.
	ReadOnly bool
	// Variable is what the environment calls the folder's path, as the task sees it.
	Variable string
}

// FileSet is one version of all files that a task is told by. Its own folder holds them.
type FileSet struct {
	Version uint64
	Files   []File
	// User is the account that secret files belong to; empty means the peer's own.
	User string
}

// File is one of them.
type File struct {
	// Path is below the folder.
	Path    string
	Content []byte
	// Secret files are for the account alone.
	Secret bool
	// InMemory has a private file lie in memory, where the driver may do so.
	InMemory bool
	// OnChange is what the task is sent when the content of a private file was replaced by another, 0 for nothing.
	OnChange syscall.Signal
}

// Proofs have a task end by itself, whatever has become of the peer, when the last proof that it is wanted is too
// old: it is stopped then, and is not even started if the first is. Prove gives a later proof.
type Proofs struct {
	// StopAfter is how old the last proof may get, StopGrace the time between StopSignal and SIGKILL then.
	StopAfter, StopGrace time.Duration
	// First is the proof that comes with the start.
	First uptime.Moment
}

// TooOld tells whether the task must end if the proof is its last.
func (p Proofs) TooOld(last uptime.Moment) bool {
	return p.StopAfter > 0 && last.Since() >= p.StopAfter
}

// Limits bound what one task may use.
type Limits struct {
	// CPUMillicores of processor time per second; 1000 is one core.
	CPUMillicores int64
	// Background tells that others come first whenever they want the processors, however much the task was given.
	Background bool
	// MemoryBytes of memory; beyond it the task is killed.
	MemoryBytes int64
	// Processes is the largest number of processes and threads.
	Processes int64
	// DiskBytes of the disk that what is the task's own takes; beyond it the task is killed.
	DiskBytes int64
	// VolumesBytes of the disk that its volumes take together; beyond it the task is killed.
	VolumesBytes int64
	// DiskBytesAsked is no bound: when the disk is full, the task that takes the most beyond it is killed.
	DiskBytesAsked int64
}

// NoExitCode is the exit code of a task whose own is not known. It is not 0, lest that be taken for success.
const NoExitCode = -1

// Status is what the driver knows of one task.
type Status struct {
	ID    string
	State State
	// PID is the task's first process, 0 when there is none.
	PID int
	// ExitCode is the program's own status once it Exited; 128+signal when a signal ended it; NoExitCode with Error.
	ExitCode int
	// Signal is the number of the signal that ended it, 0 if none did.
	Signal int
	// OutOfMemory tells that it was killed for using more memory than its limit.
	OutOfMemory bool
	// OutOfDisk tells how it was killed for using more of the disk than its limits, or filling it. Empty otherwise.
	OutOfDisk string
	// Unproved tells that the task was ended, or not started, because its last proof was too old (see Proofs), or no
	// driver was there for too long; Error may say more.
	Unproved bool
	// Lost tells that nobody saw its end and nothing of it runs, because the machine restarted or what supervised it was
	// killed: it says nothing of the program. Error tells which.
	Lost bool
	// FilesVersion is that of its files, once it has been told of them; 0 without files.
	FilesVersion uint64
	// Error says why the task could not be started or how it ended is not known. Empty otherwise.
	Error string
	// NotThere tells that this machine lacks what the task would be started with, such as its program or its user:
	// another start would fail as well. Error says what.
	NotThere bool
	// StartedAt is when the program was started, or when that was tried in vain.
	StartedAt time.Time
	// EndedAt is when the task ended, or when it was noticed if nobody saw it end. Zero while it is Running.
	EndedAt time.Time
}

// Stream chooses what a log holds.
type Stream uint8

// The streams of a task.
const (
	// Stdout is what the task writes to its standard output.
	Stdout Stream = iota + 1
	// Stderr is what the task writes to its standard error.
	Stderr
)

// LogOptions choose a part of a log.
type LogOptions struct {
	Stream Stream
	// Follow keeps the reader open until the task has ended and all its output was read.
	Follow bool
	// TailBytes starts that many bytes before the present end; negative means from the oldest byte kept. Zero shows
	// only what is written from now on.
	TailBytes int64
}

// Volumes keeps folders that outlive tasks. It is safe for concurrent use.
type Volumes interface {
	// MakeVolume makes a volume if it is missing, and returns its path. Start gives it to the account of its task, which
	// keeps it here. The volumes of a set lie in one folder, so that one can be renamed to another.
	MakeVolume(v Volume) (path string, err error)
	// VolumeSets lists the sets of which there are volumes, ordered.
	VolumeSets() []string
	// DeleteVolumes deletes the volumes of a set with all that is in them, which can take its time. No task may use
	// them.
	DeleteVolumes(set string) error
	// SetVolumesAside moves the volumes of a set to a folder for people, which it returns, "" if there are none. No task
	// may use them.
	SetVolumesAside(set string) (folder string, err error)
	// SendVolumes writes what the volumes of a set hold, as package pack has it, until the end of ctx. No task may use
	// them. The error is os.ErrNotExist if there are none.
	SendVolumes(ctx context.Context, set string, to io.Writer) error
	// VolumeBytes returns how much each volume of a set takes on the disk, by its name. The error is os.ErrNotExist if
	// there are none.
	VolumeBytes(ctx context.Context, set string) (map[string]int64, error)
	// ReceiveVolumes makes a set of what SendVolumes wrote elsewhere, which shows in VolumeSets when the whole of it is
	// there and durable, or never. The error is os.ErrExist if there is such a set, or it is on its way here.
	ReceiveVolumes(set string, from io.Reader) error
}

// Driver runs tasks, and keeps their volumes. It is safe for concurrent use.
type Driver interface {
	Volumes
	// Pull brings an image here, if it is missing, and returns its name with the digest that it has now. It tells how
	// far it is, a text at a time. An error says why tasks with this image cannot be started here.
	Pull(ctx context.Context, image Image, tell func(progress string)) (resolved string, err error)
	// Start runs t and returns when it is certain that t will be in Tasks from now on, also after a crash of this
	// process: as Running, or as Exited with Error if the program could not be started. It is idempotent by ID. An
	// error means that nothing was started and nothing is kept.
	Start(ctx context.Context, t Task) error
	// Stop sends t.StopSignal to all of the task and SIGKILL after grace, and returns at once; the end shows in Tasks.
	// It is idempotent; a second call with a shorter grace shortens it; unknown and ended tasks are ignored.
	Stop(id string, grace time.Duration) error
	// Prove tells that the task was wanted at that moment, and returns at once. An earlier moment than was told before
	// changes nothing; unknown and ended tasks, and those without Proofs, are ignored.
	Prove(id string, at uptime.Moment) error
	// FilesFolder returns the path at which a task finds its files, as it sees it itself.
	FilesFolder(id string) string
	// PrivateFolder returns the path at which a task finds the files that are its own alone, as it sees it itself.
	PrivateFolder(id string) string
	// RenewPrivate replaces files in the PrivateFolder of a running task, each as a whole, and adds those that are not
	// there. Unknown and ended tasks are ignored, and those without such a folder.
	RenewPrivate(id string, files []File) error
	// Renew replaces the files of a running task by those of a higher version, and then sends its first process the
	// signal, unless that is 0. Who opens files one by one may find some of each version; who resolves the folder's
	// path once finds one version there, for a while. What is done twice, because somebody died meanwhile, sends the
	// signal twice. Unknown and ended tasks, and versions that are not higher, are ignored.
	Renew(id string, files FileSet, signal syscall.Signal) error
	// Tasks lists all that was started and not forgotten, ordered by ID, also what an earlier process started.
	Tasks() []Status
	// Changed receives a value after Tasks changed. It has a buffer of one: several changes may be one value.
	Changed() <-chan struct{}
	// Logs reads a task's output, from as far back as it is kept. The error is os.ErrNotExist for an unknown task.
	// Output stays readable after Forget for as long as the driver's retention keeps it.
	Logs(ctx context.Context, id string, o LogOptions) (io.ReadCloser, error)
	// Folder opens the fresh folder in which a task works; of a container, the whole of its file system. Of a task that
	// has failed by itself it stays after Forget for as long as the driver's retention keeps it, of a container what that
	// has changed; what the task had in volumes, files, memory and folders for temporary files is not in it. An error
	// says why there is none.
	Folder(id string) (*os.Root, error)
	// Forget drops an ended task from Tasks and deletes its folder, unless that is kept (see Folder). Unknown tasks are
	// ignored; a running one is an error.
	Forget(id string) error
	// Exec runs a program beside the running task t.ID, with t's Command, environment, folder, account, devices and
	// volumes, confined as the task is and within its limits, and returns its exit code; 128+signal when a signal ended
	// it. It ends with the task at the latest. An error means that it could not be started, or that ctx ended it.
	// The end of ctx, and of this process, leave a session with a name as it is: the error is ErrDetached then.
	Exec(ctx context.Context, t Task, s Session) (exitCode int, err error)
	// Attach goes on with the session of a name beside a task, in place of who looks at it now, and is shown the end of
	// what was shown before. It returns as Exec does. A session to which nobody attaches for ten minutes is ended; of one
	// that has ended meanwhile the exit code is told once.
	Attach(ctx context.Context, id string, s Session) (exitCode int, err error)
	// Sessions lists the sessions with names beside a task, oldest first.
	Sessions(id string) []SessionStatus
	// Usage reads what the machine uses, and those of these tasks that run. An error means that this system does not
	// tell.
	Usage(ids []string) (Usage, error)
	// GPUs reads what is used of the machine's GPUs, without those of which nothing tells. The end of ctx leaves out
	// what was not told by then.
	GPUs(ctx context.Context) []GPUUse
	// Warnings lists, a line each, what this machine cannot do: limits or isolation that tasks run without.
	Warnings() []string
	// Close releases this process's hold; tasks go on running.
	Close() error
}
