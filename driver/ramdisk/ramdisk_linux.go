// Package ramdisk has folders whose files lie in memory, for what must never be on a disk.
package ramdisk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Mount lets what is written to a folder, which gets the mode, from now on lie in memory. Without the right to mount it
// changes nothing.
func Mount(folder string, mode os.FileMode) error {
	err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		fmt.Sprintf("size=8m,mode=%o", mode))
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("have %s in memory: %w", folder, err)
	}
	return nil
}

// Unmount ends that, and what was there is gone. It does nothing to another folder, or to one that is not there.
func Unmount(folder string) {
	_ = unix.Unmount(folder, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}
