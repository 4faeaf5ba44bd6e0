package family

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identityOf is the process of that number.
func identityOf(pid int) (Identity, bool, error) {
	const zombie = 5
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return Identity{}, false, err
	}
	start := info.Proc.P_starttime
	return Identity{PID: pid, Start: fmt.Sprintf("%d.%06d", start.Sec, start.Usec)}, info.Proc.P_stat != zombie, nil
}

// Lives tells whether the process still runs: a zombie does not.
func Lives(p Identity) bool {
	found, alive, err := identityOf(p.PID)
	return err == nil && alive && found == p
}

// Family is the first process of the supervisor's task; nothing leads to those that leave its group.
type Family struct{}

// New makes nothing.
func New(bool) (*Family, []string, error) { return &Family{}, nil, nil }

// Self is this process.
func (f *Family) Self() (Identity, error) {
	found, _, err := identityOf(os.Getpid())
	return found, err
}

// Identify is a process that was just started.
func (f *Family) Identify(pid, _ int) (Identity, error) {
	found, _, err := identityOf(pid)
	return found, err
}

// Heeds is true: the system does not tell.
func (f *Family) Heeds(Identity, syscall.Signal) bool { return true }

// Open opens nothing.
func (f *Family) Open(int) (pidfd int, err error) { return -1, nil }

// Relax does nothing.
func (f *Family) Relax() {}

// Prepare does nothing.
func (f *Family) Prepare(*syscall.SysProcAttr, *int) {}

// IsAlone is false.
func (f *Family) IsAlone() bool { return false }

// OnThreadThatEnds does the work.
func OnThreadThatEnds(work func()) { work() }

// NoNewPrivileges does nothing.
func NoNewPrivileges() error { return nil }

// BoundMemory bounds nothing.
func BoundMemory(int, int64) error { return nil }

// Kill does nothing: the process group is all there is.
func (f *Family) Kill() bool { return false }
