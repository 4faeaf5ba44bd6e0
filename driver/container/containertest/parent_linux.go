package containertest

import "syscall"

// endsWithParent ends a process with this one, however that ends.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
