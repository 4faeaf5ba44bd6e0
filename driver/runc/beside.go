package runc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"starling/driver"
	"starling/driver/beside"
)

// Beside is a container that runs, in the hands of a supervisor.
type Beside struct {
	// Program is the path of runc, Dir the folder of the bundle, Supervisor the number of the process whose namespaces
	// have both.
	Program, Dir string
	Supervisor   int
}

// Exec runs a program in the container, as its own account and in its working directory, and ends it when ctx ends.
func (b Beside) Exec(ctx context.Context, command []string, s driver.Session) (exitCode int, err error) {
	words := []string{"nsenter", "--target", strconv.Itoa(b.Supervisor), "--mount", "--pid", "--",
		b.Program, "--root", statePath(b.Dir), "exec"}
	if s.Terminal != nil {
		words = append(words, "--tty")
	}
	for _, variable := range s.Env {
		words = append(words, "--env", variable)
	}
	program, err := beside.New(ctx, slices.Concat(words, []string{name}, command), s, nil)
	if err != nil {
		return driver.NoExitCode, err
	}
	defer program.Close()
	program.Env = []string{"PATH=" + os.Getenv("PATH")}
	program.Cancel = func() error {
		killTree(program.Process.Pid)
		return nil
	}
	err = program.Start()
	if errors.Is(err, exec.ErrNotFound) {
		return driver.NoExitCode, fmt.Errorf("run a program in a container: install nsenter (util-linux): %w", err)
	}
	if err != nil {
		return driver.NoExitCode, err
	}
	program.Started()
	return program.Finish(ctx)
}

// killTree ends a process with all that descends from it, the descendants first, lest they get another parent. It is
// stopped meanwhile, so that it has no new ones.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for _, child := range children(pid) {
		killTree(child)
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// children lists the processes whose parent is this one. The kernel's own list, by thread, loses those that another
// thread inherits while it is read.
func children(parent int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path) // nothing if it has ended
		tail := text[bytes.LastIndexByte(text, ')')+1:]
		if fields := strings.Fields(string(tail)); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
