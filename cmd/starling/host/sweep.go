package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"starling/driver/process"
)

// Sweep ends the tasks in data directories that match the pattern and whose owners were killed, and removes those
// directories. It is for data that nobody will come back to.
func Sweep(pattern string) error {
	left, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("look for what was left behind: %w", err)
	}
	var errs []error
	for _, path := range left {
		if !abandoned(path) {
			continue
		}
		if err := sweepFolder(path); err != nil {
			errs = append(errs, fmt.Errorf("clear %s away: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// abandoned tells whether the process that held the folder is gone. One that is only being made has no owner yet.
func abandoned(path string) bool {
	text, err := os.ReadFile(filepath.Join(path, lockName))
	if err != nil {
		return false
	}
	owner, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return err == nil && errors.Is(syscall.Kill(owner, 0), syscall.ESRCH)
}

func sweepFolder(path string) error {
	held, err := HoldFolder(path)
	if err != nil {
		return err
	}
	defer held.Release()
	hosts, err := filepath.Glob(filepath.Join(path, "*", driverFolder))
	if err != nil {
		return err
	}
	for _, folder := range hosts {
		if err := EndTasks(filepath.Dir(folder)); err != nil {
			return err
		}
	}
	return os.RemoveAll(path)
}

// EndTasks kills the tasks that a machine's peer has left behind in its folder. No peer may run there.
func EndTasks(folder string) error {
	tasks, err := process.Open(process.Config{Dir: filepath.Join(folder, driverFolder),
		Supervisor: []string{"none, for nothing is started"}})
	if err != nil {
		return err
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return errors.Join(endTasks(now, tasks, 0), tasks.Close())
}
