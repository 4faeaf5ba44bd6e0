//go:build !linux

package ramdisk

// Mount changes nothing: this system has no such folders.
func Mount(string) error { return nil }

// Unmount does nothing.
func Unmount(string) {}
