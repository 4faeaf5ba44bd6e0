package family

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"starling/driver/plain"
)

// stat is what /proc says of a process: its number, state, parent and start, seen from the namespace of that /proc.
type stat struct {
	Identity
	state  string
	parent int
}

// readStat reads stat of a process in a /proc; false if there is no such process.
func readStat(proc int, process string) (stat, bool) {
	text, err := readIn(proc, process+"/stat")
	if err != nil {
		return stat{}, false
	}
	head, tail, ok := bytes.Cut(text, []byte(" ("))
	last := bytes.LastIndexByte(tail, ')') // a program's name may hold any character
	if !ok || last < 0 {
		return stat{}, false
	}
	const parent, start = 1, 19 // fields after the name
	fields := strings.Fields(string(tail[last+1:]))
	if len(fields) <= start {
		return stat{}, false
	}
	s := stat{state: fields[0]}
	s.PID, err = strconv.Atoi(string(head))
	s.Start = fields[start]
	var failed error
	s.parent, failed = strconv.Atoi(fields[parent])
	return s, err == nil && failed == nil
}

// readIn reads a file of a /proc.
func readIn(proc int, path string) ([]byte, error) {
	file, err := unix.Openat(proc, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return plain.Rest(file)
}

func openProc() (int, error) {
	return unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Lives tells whether the process still runs: a zombie does not.
func Lives(p Identity) bool {
	proc, err := openProc()
	if err != nil {
		return true // rather wait than take a living one for dead
	}
	defer unix.Close(proc)
	s, ok := readStat(proc, strconv.Itoa(p.PID))
	return ok && s.Identity == p && s.state != "Z" && s.state != "X"
}

// Family is all processes of the supervisor's task.
type Family struct {
	proc       int // the /proc of the peer's namespace
	namespaces bool
	self       Identity
	slack      int // of the timers of what this process starts; zero if it is that of this process, too
}

// New makes this process the one that orphaned descendants go to. The warnings tell what failed.
func New(namespaces bool) (*Family, []string, error) {
	proc, err := openProc()
	if err != nil {
		return nil, nil, err
	}
	f := &Family{proc: proc, namespaces: namespaces}
	if !namespaces {
		return f, nil, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return f, []string{fmt.Sprintf("tasks see the processes of the machine: their mounts could not be set apart: %v",
			err)}, nil
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return f, []string{fmt.Sprintf("tasks see the processes of the machine: their /proc could not be mounted: %v", err)},
			nil
	}
	// What lies there is called by the numbers of processes, as by Open MPI, which tasks with namespaces have in common.
	err = unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return f, []string{fmt.Sprintf("tasks share memory by name with all of the machine: their /dev/shm could not be mounted: %v", err)}, nil
	}
	return f, nil, nil
}

// Self is this process as the peer sees it.
func (f *Family) Self() (Identity, error) {
	if f.self.PID == 0 {
		s, ok := readStat(f.proc, "self")
		if !ok {
			return Identity{}, errors.New("cannot read /proc/self/stat")
		}
		f.self = s.Identity
	}
	return f.self, nil
}

// Identify is a process that was just started, as the peer sees it.
func (f *Family) Identify(_, pidfd int) (Identity, error) {
	defer unix.Close(pidfd)
	info, err := readIn(f.proc, fmt.Sprintf("self/fdinfo/%d", pidfd))
	if err != nil {
		return Identity{}, err
	}
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid := strings.TrimSpace(number)
			if s, ok := readStat(f.proc, pid); ok {
				return s.Identity, nil
			}
			number, err := strconv.Atoi(pid)
			return Identity{PID: number}, err
		}
	}
	return Identity{}, errors.New("/proc does not tell the number of a process")
}

// Heeds tells whether a process has said what a signal does, so that it neither ends by it nor, as the first of its
// namespace, never hears of it. True also where that cannot be told.
func (f *Family) Heeds(p Identity, which syscall.Signal) bool {
	text, err := readIn(f.proc, strconv.Itoa(p.PID)+"/status")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		name, mask, _ := strings.Cut(line, ":\t")
		if name != "SigBlk" && name != "SigIgn" && name != "SigCgt" {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil || bits&(1<<(which-1)) != 0 {
			return true
		}
	}
	return false
}

// Open returns what Identify wants of a process that runc has started.
func (f *Family) Open(pid int) (pidfd int, err error) { return unix.PidfdOpen(pid, 0) }

// relaxedSlack is by how many nanoseconds timers may be late.
const relaxedSlack = 1_000_000

// Relax lets the timers of this process be a little late. While one thread works the runtime looks at all of them every
// twenty microseconds, and wakes others for those that wait in the kernel, which is an eighth of what a short task
// costs. Where the program has C in it this does nothing.
func (f *Family) Relax() {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || slack <= 0 || slack >= relaxedSlack {
		return
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, relaxedSlack, 0); errno == 0 {
		f.slack = slack
	}
}

// Prepare completes the attributes of the first process, and has it be as punctual as this one was before Relax: the
// calling thread must start it.
func (f *Family) Prepare(a *syscall.SysProcAttr, pidfd *int) {
	a.Pdeathsig, a.PidFD = unix.SIGKILL, pidfd
	if f.slack > 0 {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(f.slack), 0, 0, 0)
	}
}

// IsAlone tells whether no other process is in the namespace of processes of which this one is the first.
func (f *Family) IsAlone() bool { return f.namespaces && errors.Is(unix.Kill(-1, 0), unix.ESRCH) }

// OnThreadThatEnds does the work on a thread that ends with it. The main thread of a process does not.
func OnThreadThatEnds(work func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() { // elsewhere, while this one has the main thread
			defer close(done)
			runtime.LockOSThread()
			work()
		}()
		<-done
		return
	}
	work()
}

// NoNewPrivileges is for this thread and all that it starts.
func NoNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// BoundMemory bounds the memory of each process of the task, for want of anything that bounds the whole. A process of
// another user stays without where this one lacks CAP_SYS_RESOURCE, as in many containers: the task has begun by then.
func BoundMemory(pid int, bytes int64) error {
	limit := &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, limit, nil); !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// Kill sends SIGKILL to all processes of the task that it can name: all in the namespace, or else this process's
// children. Their own children then become this process's, so it ends all to repeat this until none is left. It tells
// whether the namespace has no other process than this one.
func (f *Family) Kill() (alone bool) {
	if f.namespaces {
		return errors.Is(unix.Kill(-1, unix.SIGKILL), unix.ESRCH)
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, process := range processes {
		if s, ok := readStat(f.proc, process.Name()); ok && s.parent == os.Getpid() {
			_ = unix.Kill(s.PID, unix.SIGKILL)
		}
	}
	return false
}
