package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Folder is a data directory that this process holds alone.
type Folder struct {
	// Path is absolute.
	Path string
	lock *os.File
}

// lockName is the file that is locked; it holds the number of the process that has the folder.
const lockName = "lock"

// HoldFolder makes the folder if it is missing and takes its lock, which ends with the process at the latest.
func HoldFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w\nhint: choose one that you may write with --data DIR", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := take(lock); err != nil {
		defer lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data directory %s: %w", path, err)
		}
		return nil, fmt.Errorf("the data directory %s is in use by process %s\nhint: stop that, or choose another with --data DIR",
			path, cmp.Or(holder(lock), "unknown"))
	}
	if err := lock.Truncate(0); err == nil {
		fmt.Fprintln(lock, os.Getpid())
	}
	return &Folder{path, lock}, nil
}

// lingerMax is how long the lock of a process that has ended is waited for: until a program that it was about to start,
// and that has its open files till then, has begun.
const lingerMax = 5 * time.Second

// take takes the lock. One that a running process has it does not wait for.
func take(lock *os.File) error {
	for end := time.Now().Add(lingerMax); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
		if pid, no := strconv.Atoi(holder(lock)); no != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return err
		}
	}
}

// holder returns the number of the process that took the lock last, "" if none is told.
func holder(lock *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(lock, 0, 20))
	return strings.TrimSpace(string(text))
}

// Release lets others have the folder.
func (f *Folder) Release() { f.lock.Close() }
