package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// eat takes memory until there is no more, in a child, so that it is not the task's first process that is killed.
func eat() {
	if os.Args[2] != "child" {
		fmt.Println("ready")
		child := exec.Command(os.Args[0], eatWord, "child")
		_ = child.Run()
		select {}
	}
	for all := [][]byte{}; ; {
		eaten := make([]byte, 1<<20)
		for i := 0; i < len(eaten); i += 4096 {
			eaten[i] = 1
		}
		all = append(all, eaten)
		runtime.KeepAlive(all)
	}
}

// bomb holds a lock with all that it becomes: a shell that multiplies as long as it is allowed to.
func bomb(lock string) {
	file, err := syscall.Open(lock, syscall.O_RDWR|syscall.O_CREAT, 0o600)
	if err == nil {
		err = syscall.Flock(file, syscall.LOCK_SH)
	}
	if err == nil {
		script := `trap "" TERM; bomb() { while :; do bomb & done; }; bomb & echo ready; exec sleep 1000`
		err = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, []string{"PATH=/bin:/usr/bin"})
	}
	panic(err)
}
