package process

import (
	"errors"
	"os"
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

// pipe is os.Pipe, of which what is written may wait in the kernel, and only what is read by the runtime.
func pipe() (read, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_ = unix.SetNonblock(ends[0], true) // so that it may have a deadline
	return os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe"), nil
}

// dup has a number of an open file mean another one.
func dup(file, as int) error { return unix.Dup3(file, as, 0) }

// wakeReader is not needed here.
func wakeReader(folder) {}

// lookAgain is how often to look whether a process that is dying is gone.
const lookAgain = 2 * time.Millisecond
