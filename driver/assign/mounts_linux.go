package assign

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openMounts opens the list of this process's mounts; nil if that cannot be done. The runtime is not to wait for it,
// because a change is told once.
func openMounts() *os.File {
	const path = "/proc/self/mounts"
	file, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(file), path)
}

// haveChanged tells whether mounts have changed since this was asked last.
func haveChanged(mounts *os.File) (bool, error) {
	raw, err := mounts.SyscallConn()
	if err != nil {
		return false, err
	}
	var changed bool
	var failed error
	err = raw.Control(func(file uintptr) {
		list := []unix.PollFd{{Fd: int32(file), Events: unix.POLLPRI}}
		for {
			if _, failed = unix.Poll(list, 0); !errors.Is(failed, unix.EINTR) {
				break
			}
		}
		changed = list[0].Revents&unix.POLLPRI != 0
	})
	return changed, errors.Join(err, failed)
}
