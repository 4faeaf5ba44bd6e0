package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryBytes is how much memory the machine has.
func memoryBytes() (int64, error) {
	bytes, err := unix.SysctlUint64("hw.memsize")
	return int64(bytes), err
}

// ownProgram is how this program starts itself again.
func ownProgram() (string, error) { return os.Executable() }
