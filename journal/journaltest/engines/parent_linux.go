package engines

import "syscall"

// dieWithParent ends a server when whoever started it is gone, and keeps the terminal's Ctrl-C from it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
