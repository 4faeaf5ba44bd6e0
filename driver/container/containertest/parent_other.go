//go:build !linux

package containertest

import "syscall"

// endsWithParent does not: there is no way to let a process end with this one.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
