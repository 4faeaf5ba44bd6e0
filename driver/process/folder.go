package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/quota"
	"starling/driver/record"
)

// folder is where all about one task is kept.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }
func (f folder) name() string            { return filepath.Base(string(f)) }
func (f folder) alive() string           { return f.file("alive") }
func (f folder) orders() string          { return f.file("orders") }
func (f folder) work() string            { return f.file("work") }
func (f folder) words() string           { return f.file("supervisor.log") }

// The records in a folder.
const (
	originRecord  = "origin.json"
	startedRecord = "started.json"
	endedRecord   = "ended.json"
)

// streamName is the name of a stream's segments.
func streamName(s driver.Stream) string {
	if s == driver.Stderr {
		return "stderr"
	}
	return "stdout"
}

// make creates the folder with what both sides need. Users that tasks run as may pass through it and see nothing.
func (f folder) make() error {
	if err := os.MkdirAll(string(f), 0o711); err != nil {
		return err
	}
	for _, fifo := range []string{f.alive(), f.orders()} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make %s: %w", fifo, err)
		}
	}
	return nil
}

func (f folder) write(name string, value any) error { return record.Write(string(f), name, value) }

// writeDurably stores a record so that a crash of the machine does not lose it.
func (f folder) writeDurably(name string, value any) error {
	return record.WriteDurably(string(f), name, value)
}

// fill does that where room for another record was set aside before, which is durable.
func (f folder) fill(name string, value any) error { return record.Fill(string(f), name, value) }

func (f folder) read(name string, value any) (bool, error) {
	return record.Read(string(f), name, value)
}

// reserve sets room aside for the records of a task's start and end: those can be stored although the task fills the
// disk.
func (f folder) reserve() error { return record.Reserve(string(f), startedRecord, endedRecord) }

// reserved tells whether and when a supervisor set that room aside, as it does before anything of the task begins.
func (f folder) reserved() (at time.Time, did bool) { return record.Reserved(string(f), endedRecord) }

// workDir is the folder to run in, made and given to the account if it is the task's own.
func workDir(f folder, t driver.Task, account *syscall.Credential) (string, error) {
	if t.WorkDir != "" {
		info, err := os.Stat(t.WorkDir)
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return "", fmt.Errorf("working directory %q: %w", t.WorkDir, err)
		}
		return t.WorkDir, nil
	}
	if err := os.Mkdir(f.work(), 0o700); err != nil {
		return "", err
	}
	if limit := t.Limits.DiskBytes; limit > 0 {
		sayUnbounded(errors.Join(quota.Begin(f.work()), quota.Limit(f.work(), limit)))
	}
	if account == nil {
		return f.work(), nil
	}
	return f.work(), os.Chown(f.work(), int(account.Uid), int(account.Gid))
}

// sayUnbounded says why the file system does not bound what it should: the driver watches that then.
func sayUnbounded(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
