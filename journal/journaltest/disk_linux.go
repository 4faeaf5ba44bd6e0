package journaltest

import (
	"fmt"
	"syscall"
)

func mount(folder string, bytes int64) error {
	return syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
