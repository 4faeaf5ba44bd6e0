//go:build !linux

package engines

import "syscall"

// dieWithParent keeps the terminal's Ctrl-C from a server; there is no way to let it die with whoever started it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
