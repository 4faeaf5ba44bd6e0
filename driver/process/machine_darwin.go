package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how often to look whether a process that is dying is gone.
const lookAgain = 2 * time.Millisecond

// openFilesFolder lists the files that this process has open.
const openFilesFolder = "/dev/fd"

// bootID names this run of the machine.
func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// identityOf is the process of that number.
func identityOf(pid int) (identity, bool, error) {
	const zombie = 5
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return identity{}, false, err
	}
	start := info.Proc.P_starttime
	return identity{PID: pid, Start: fmt.Sprintf("%d.%06d", start.Sec, start.Usec)}, info.Proc.P_stat != zombie, nil
}

// lives tells whether the process still runs: a zombie does not.
func lives(p identity) bool {
	found, alive, err := identityOf(p.PID)
	return err == nil && alive && found == p
}

// mayHaveNamespaces says that there are none.
func mayHaveNamespaces() error { return errors.New("this system has none") }

// supervisorAttributes are those that a supervisor is started with.
func supervisorAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// openAlive opens the reading end of the FIFO. Reading blocks a thread, because the end of a FIFO does not reach
// kqueue here; wakeReader ends that.
func openAlive(f folder) (*os.File, error) {
	fd, err := unix.Open(f.alive(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: f.alive(), Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.alive()), nil
}

// wakeReader has a blocked reader of alive return.
func wakeReader(f folder) {
	if fd, err := unix.Open(f.alive(), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte("\n"))
		unix.Close(fd)
	}
}

// family is the first process of the supervisor's task; nothing leads to those that leave its group.
type family struct{}

func newFamily(bool) (*family, []string, error) { return &family{}, nil, nil }

// self is this process.
func (f *family) self() (identity, error) {
	found, _, err := identityOf(os.Getpid())
	return found, err
}

// identify is a process that was just started.
func (f *family) identify(pid, _ int) (identity, error) {
	found, _, err := identityOf(pid)
	return found, err
}

func (f *family) open(int) (pidfd int, err error) { return -1, nil }

func (f *family) prepare(*syscall.SysProcAttr, *int) {}

func noNewPrivileges() error { return nil }

func boundMemory(int, int64) error { return nil }

// kill does nothing: the process group is all there is.
func (f *family) kill() {}
