package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/record"
)

// folderNameMax is the longest name of a task's folder; what is derived from it must fit into 255 bytes.
const folderNameMax = 200

// folder is where all about one task is kept.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }
func (f folder) name() string            { return filepath.Base(string(f)) }
func (f folder) alive() string           { return f.file("alive") }
func (f folder) orders() string          { return f.file("orders") }
func (f folder) work() string            { return f.file("work") }
func (f folder) words() string           { return f.file("supervisor.log") }

// The records in a folder. No volume has the name of the first.
const (
	idRecord      = ".id.json"
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

// folderName is an ID as the name of a folder: lower case letters, digits and "_-" stand for themselves, so do dots
// that are not first, all other bytes are %xx. Upper case is escaped because some file systems do not tell it apart. Of
// a name that would be too long there are the begin and, behind a "~", the digest of the ID; then the folder keeps the
// ID.
func folderName(id string) (string, error) {
	if id == "" {
		return "", errors.New("the ID is empty")
	}
	var name strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			name.WriteByte(c)
		default:
			fmt.Fprintf(&name, "%%%02x", c)
		}
	}
	if name.Len() <= folderNameMax {
		return name.String(), nil
	}
	digest := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s~%x", name.String()[:folderNameMax-digestBytes*2-1], digest[:digestBytes]), nil
}

// digestBytes are what is kept of the digest of an ID.
const digestBytes = 16

// isShortened tells whether the name of a folder does not tell the whole ID.
func isShortened(name string) bool { return len(name) == folderNameMax && strings.Contains(name, "~") }

// errNoID is what a folder is that was made and got no further.
var errNoID = errors.New("the folder does not tell its ID")

// keepID stores the ID in the folder if its name does not tell it.
func (f folder) keepID(id string) error {
	if !isShortened(filepath.Base(string(f))) {
		return nil
	}
	kept := ""
	if _, err := f.read(idRecord, &kept); err != nil || kept == id {
		return err
	}
	return f.writeDurably(idRecord, id)
}

// id is the ID of which folderName made the folder's name.
func (f folder) id() (string, error) {
	name := filepath.Base(string(f))
	id, err := url.PathUnescape(name)
	if isShortened(name) {
		var kept bool
		if kept, err = f.read(idRecord, &id); err == nil && !kept {
			err = errNoID
		}
	}
	if err != nil {
		return "", err
	}
	if again, err := folderName(id); err != nil || again != name {
		return "", fmt.Errorf("%q is not the folder of a task", name)
	}
	return id, nil
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
	if account == nil {
		return f.work(), nil
	}
	return f.work(), os.Chown(f.work(), int(account.Uid), int(account.Gid))
}

// accounts writes the files of accounts that a task finds whose user is its job's own: programs ask who they are. None
// for another user.
func (f folder) accounts(name string) (map[string]string, error) {
	number, own := driver.OwnNumber(name)
	if !own {
		return nil, nil
	}
	files := map[string]string{}
	for path, line := range map[string]string{
		"/etc/passwd": fmt.Sprintf("task:x:%d:%d::%s:/bin/sh\n", number, number, f.work()),
		"/etc/group":  fmt.Sprintf("task:x:%d:\n", number),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := f.file(filepath.Base(path))
		if err := os.WriteFile(file, append(text, line...), 0o644); err != nil {
			return nil, err
		}
		files[path] = file
	}
	return files, nil
}
