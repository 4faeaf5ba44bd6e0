//go:build !linux

package door

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// credentialsOf asks the kernel for those at the time of connecting.
func credentialsOf(connection *net.UnixConn) (localCredentials, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return localCredentials{}, err
	}
	var found *unix.Xucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		found, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return localCredentials{}, err
	}
	return localCredentials{uid: int(found.Uid)}, nil
}
