package agents

import "syscall"

// dieWithParent ends an agent when whoever started it is gone, and keeps the terminal's Ctrl-C from it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
