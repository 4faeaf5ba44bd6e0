package process

import (
	"errors"
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

func pipe() (read, write *os.File, err error) { return os.Pipe() }

// dup has a number of an open file mean another one.
func dup(file, as int) error { return unix.Dup2(file, as) }

// wakeReader has a blocked reader of alive return.
func wakeReader(f folder) {
	if fd, err := unix.Open(f.alive(), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		_, _ = unix.Write(fd, []byte("\n"))
		unix.Close(fd)
	}
}
