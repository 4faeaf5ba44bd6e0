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
	var failed error
	err = raw.Control(func(fd uintptr) {
		found, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return localCredentials{}, err
	}
	return localCredentials{uid: int(found.Uid), isTask: isElsewhere(int(found.Pid))}, nil
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
