// Package lock keeps a folder of tasks for one driver at a time, and tells their supervisors whether there is one.
package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"starling/driver/plain"
	"starling/driver/uptime"
)

// UnattendedDefault is how long tasks go on without a driver if none has said so.
const UnattendedDefault = 10 * time.Minute

// name is the locked file in the folder. It says, in textBytes, how long tasks go on while nobody has it.
const (
	name      = "lock"
	textBytes = 32
)

// timeout is how long to wait for an earlier driver to be gone completely, and again how often to look. A process that
// was killed while it forked leaves a child that holds its files until it executes.
const (
	timeout = time.Second
	again   = 2 * time.Millisecond
)

// Lock is held by a driver that has its folder.
type Lock struct{ file *os.File }

// Take keeps other drivers out until the lock is released or this process has ended, and says how long tasks go on
// without a driver.
func Take(dir string, unattended time.Duration) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(again) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			file.Close()
			return nil, fmt.Errorf("another driver has this folder; give each peer of a machine its own: %w", err)
		}
	}
	// On a full disk there is room for it at least where something stood before; if not, the default counts.
	_, _ = file.WriteAt(fmt.Appendf(nil, "%-*s", textBytes, unattended), 0)
	return &Lock{file}, nil
}

// Release lets others have the folder.
func (l *Lock) Release() error {
	// Unlocked and not only closed, because a child that is just being forked holds the file, too.
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

// lookMax is the most that passes from one look for a driver to the next.
const lookMax = 30 * time.Second

// Deserted returns when no driver has had the folder for as long as tasks go on without one, and how long that is; 0
// when over is closed before.
func Deserted(dir string, over <-chan struct{}) time.Duration {
	since := uptime.Moment(0) // when it was seen first that there is none
	for {
		most, none := unattended(dir)
		switch now := uptime.Now(); {
		case !none:
			since = 0
		case since == 0:
			since = now
		case time.Duration(now-since) >= most:
			return most
		}
		select {
		case <-over:
			return 0
		case <-time.After(min(most/20, lookMax)):
		}
	}
}

// unattended returns how long tasks in the folder go on without a driver, and whether there is none now.
func unattended(dir string) (most time.Duration, now bool) {
	file, err := plain.Open(filepath.Join(dir, name), os.O_RDONLY, 0)
	if err != nil {
		return UnattendedDefault, true
	}
	defer file.Close() // and with it the lock
	text := make([]byte, textBytes)
	n, _ := file.ReadAt(text, 0)
	if most, err = time.ParseDuration(strings.TrimSpace(string(text[:n]))); err != nil || most <= 0 {
		most = UnattendedDefault
	}
	return most, syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}
