package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openFilesFolder lists the files that this process has open.
const openFilesFolder = "/proc/self/fd"

// bootID names this run of the machine.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// stat is what /proc says of a process: its number, state, parent and start, seen from the namespace of that /proc.
type stat struct {
	identity
	state  string
	parent int
}

// readStat reads stat of a process in a /proc; false if there is no such process.
func readStat(proc *os.Root, process string) (stat, bool) {
	text, err := proc.ReadFile(process + "/stat")
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

// lives tells whether the process still runs: a zombie does not.
func lives(p identity) bool {
	proc, err := os.OpenRoot("/proc")
	if err != nil {
		return true // rather wait than take a living one for dead
	}
	defer proc.Close()
	s, ok := readStat(proc, strconv.Itoa(p.PID))
	return ok && s.identity == p && s.state != "Z" && s.state != "X"
}

// mayHaveNamespaces tells whether this process may put others into namespaces, and why not.
func mayHaveNamespaces() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	if sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return errors.New("the peer lacks the capability CAP_SYS_ADMIN; run it as root")
	}
	return nil
}

// supervisorAttributes are those that a supervisor is started with.
func supervisorAttributes(namespaces bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if namespaces {
		a.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	return a
}

// openAlive opens the reading end of the FIFO; it needs no writer, and Close ends a blocked Read.
func openAlive(f folder) (*os.File, error) {
	return os.OpenFile(f.alive(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// wakeReader is not needed here.
func wakeReader(folder) {}

// family is all processes of the supervisor's task.
type family struct {
	proc       *os.Root // the /proc of the peer's namespace
	namespaces bool
}

// newFamily makes this process the one that orphaned descendants go to. The warnings tell what failed.
func newFamily(namespaces bool) (*family, []string, error) {
	proc, err := os.OpenRoot("/proc")
	if err != nil {
		return nil, nil, err
	}
	f := &family{proc: proc, namespaces: namespaces}
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

// self is this process as the peer sees it.
func (f *family) self() (identity, error) {
	s, ok := readStat(f.proc, "self")
	if !ok {
		return identity{}, errors.New("cannot read /proc/self/stat")
	}
	return s.identity, nil
}

// identify is a process that was just started, as the peer sees it.
func (f *family) identify(_, pidfd int) (identity, error) {
	defer unix.Close(pidfd)
	info, err := f.proc.ReadFile(fmt.Sprintf("self/fdinfo/%d", pidfd))
	if err != nil {
		return identity{}, err
	}
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid := strings.TrimSpace(number)
			if s, ok := readStat(f.proc, pid); ok {
				return s.identity, nil
			}
			number, err := strconv.Atoi(pid)
			return identity{PID: number}, err
		}
	}
	return identity{}, errors.New("/proc does not tell the number of a process")
}

// open returns what identify wants of a process that runc has started.
func (f *family) open(pid int) (pidfd int, err error) { return unix.PidfdOpen(pid, 0) }

// prepare completes the attributes of the first process.
func (f *family) prepare(a *syscall.SysProcAttr, pidfd *int) {
	a.Pdeathsig, a.PidFD = unix.SIGKILL, pidfd
}

// noNewPrivileges is for this thread and all that it starts.
func noNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// boundMemory bounds the memory of each process of the task, for want of anything that bounds the whole. A process of
// another user stays without where this one lacks CAP_SYS_RESOURCE, as in many containers: the task has begun by then.
func boundMemory(pid int, bytes int64) error {
	limit := &unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, limit, nil); !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// kill sends SIGKILL to all processes of the task that it can name: all in the namespace, or else this process's
// children. Their own children then become this process's, so it ends all to repeat this until none is left.
func (f *family) kill() {
	if f.namespaces {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, process := range processes {
		if s, ok := readStat(f.proc, process.Name()); ok && s.parent == os.Getpid() {
			_ = unix.Kill(s.PID, unix.SIGKILL)
		}
	}
}

// lookAgain is how often to look whether a process that is dying is gone.
const lookAgain = 2 * time.Millisecond
