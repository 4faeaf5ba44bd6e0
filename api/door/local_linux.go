package door

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// credentialsOf asks the kernel for those at the time of connecting.
func credentialsOf(connection *net.UnixConn) (localCredentials, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return localCredentials{}, err
	}
	var found *unix.Ucred
	var handle int
	var failed, untold error
	err = raw.Control(func(fd uintptr) {
		found, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		handle, untold = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if err := errors.Join(err, failed); err != nil {
		return localCredentials{}, err
	}
	one := localCredentials{uid: int(found.Uid), isTask: isElsewhere(int(found.Pid))}
	switch {
	case errors.Is(untold, unix.ENOPROTOOPT): // before Linux 6.5
	case untold != nil:
		one.isTask = true
	default:
		// Only while the process that has connected is there, its number is not another's. One of another user may not be
		// sent a signal, and is there.
		err := unix.PidfdSendSignal(handle, 0, nil, 0)
		one.isTask = one.isTask || err != nil && !errors.Is(err, unix.EPERM)
		_ = unix.Close(handle)
	}
	return one, nil
}

// isElsewhere tells whether a process is in another namespace of processes than this one, as the tasks of a peer that
// runs as root are. A process of another namespace that is not below ours has no number here; one that has ended is
// taken for a task; one that may not be looked at is of a user's peer, whose tasks have no namespaces.
func isElsewhere(pid int) bool {
	if pid == 0 {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && theirs != ours
}
