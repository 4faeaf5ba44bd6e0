package confine

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_AARCH64
	// foreignNumbers are above all that there are.
	foreignNumbers = 0x40000000
)

// refusedHere are system calls of this architecture alone.
var refusedHere []uint32
