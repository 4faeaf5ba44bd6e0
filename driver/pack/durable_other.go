//go:build !linux

package pack

import "golang.org/x/sys/unix"

// durable has all that was written below a folder outlive a crash of the machine.
func durable(string) error { return unix.Sync() }
