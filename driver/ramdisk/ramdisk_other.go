//go:build !linux

package ramdisk

import "os"

// Mount changes nothing: this system has no such folders.
func Mount(string, os.FileMode) error { return nil }

// Unmount does nothing.
func Unmount(string) {}
