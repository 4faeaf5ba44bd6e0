package confine

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_X86_64
	// foreignNumbers begin those of the x32 interface.
	foreignNumbers = 0x40000000
)

// refusedHere are system calls of this architecture alone.
var refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM}
