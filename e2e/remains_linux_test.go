package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endRemains ends the tasks that agents in a folder have left running when they ended, as they must, and unmounts what
// those had in memory: no agent comes back for them.
func endRemains(folder string) {
	programs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range programs {
		words, _ := os.ReadFile(path) // it may have ended
		if !bytes.Contains(words, []byte("\x00"+folder+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[1]; strings.HasPrefix(at, folder+"/") {
			_ = unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
}
