// Package datadir tells whether the files of a member of the engine are whole, before the engine opens them.
//
// The engine ends the process where it finds them damaged: by a panic in a goroutine of its own, which nobody can
// recover, or by a fault of the memory into which it maps a file that is too short. So they are read here first, as
// plain files and by the engine's own rules, and nothing is changed. What an engine that was killed at any time leaves
// is whole. What lies within a value of the database has no sum there, and is not seen.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Contents is what the files of a member tell.
type Contents struct {
	// Member is its number in the engine.
	Member uint64
	// Term and Index are of the last entry of its log.
	Term, Index uint64
	// Committed is up to where the member knew that a majority has the log.
	Committed uint64
}

// ErrNoMember tells that a folder holds no data of a member.
var ErrNoMember = errors.New("no data of a member of the quorum is there")

// Damage is what is wrong with a file of a member.
type Damage struct {
	// Dir is the member's folder, File the file, or the folder within, that is damaged.
	Dir, File string
	Err       error
}

// Error implements error. It says what to do, too.
func (d *Damage) Error() string {
	if errors.Is(d.Err, fs.ErrPermission) {
		return fmt.Sprintf("read %s, of this node's etcd member: %v\nhint: let the agent's user read and write all in %s", d.File,
			d.Err, d.Dir)
	}
	return fmt.Sprintf("%s, of this node's etcd member, is damaged: %v; nothing was changed\nhint: %s", d.File, d.Err,
		Remedy(d.Dir))
}

// Unwrap returns what is wrong.
func (d *Damage) Unwrap() error { return d.Err }

// Remedy says what helps a machine whose member has damaged files in a folder.
func Remedy(dir string) string {
	return fmt.Sprintf("if most other machines of the quorum run, move %s away and start the agent: the member is made anew from "+
		"them; if they are lost, run `starling recover` on another that is left, or found a cluster from a backup with "+
		"`starling restore`", dir)
}

// HasMember tells whether a folder holds data of a member, whole or not.
func HasMember(dir string) bool {
	m := newMember(dir)
	if names, err := segments(m.log); err != nil || len(names) > 0 {
		return true
	}
	_, err := Check(dir)
	return !errors.Is(err, ErrNoMember)
}

// Check reads the files of a member, and waits until nobody has its database open. The error is ErrNoMember if there
// are none, and a *Damage if they are not whole.
func Check(dir string) (Contents, error) {
	m := newMember(dir)
	var err error
	if m.names, err = segments(m.log); err != nil {
		return Contents{}, m.damage(m.log, err)
	}
	file, err := os.Open(m.database)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(m.names) == 0:
		return Contents{}, fmt.Errorf("%s: %w", dir, ErrNoMember)
	case errors.Is(err, fs.ErrNotExist):
		return Contents{}, m.damage(m.database, errors.New("it is missing"))
	case err != nil:
		return Contents{}, m.damage(m.database, err)
	}
	defer file.Close() // and with it the lock ends
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH); err != nil {
		return Contents{}, m.damage(m.database, err)
	}
	var written written
	var inLog error
	var reading sync.WaitGroup
	if len(m.names) > 0 {
		reading.Go(func() { written, inLog = m.readLog() })
	}
	held, err := readDatabase(file)
	reading.Wait()
	if err != nil {
		return Contents{}, m.damage(m.database, err)
	}
	if len(m.names) == 0 && len(held.members) == 0 {
		return Contents{}, fmt.Errorf("%s: %w", dir, ErrNoMember) // its first start came no further
	}
	if len(m.names) == 0 {
		return Contents{}, m.damage(m.log, errors.New("it is missing"))
	}
	if inLog != nil {
		return Contents{}, inLog
	}
	if err := m.compare(held, written); err != nil {
		return Contents{}, m.damage(m.database, err)
	}
	return written.Contents, nil
}

// member is a member whose files are checked.
type member struct {
	dir, database, log string
	names              []string // of the segments of its log
}

func newMember(dir string) *member {
	within := filepath.Join(dir, "member")
	return &member{dir: dir, database: filepath.Join(within, "snap", "db"), log: filepath.Join(within, "wal")}
}

func (m *member) damage(file string, err error) error { return &Damage{m.dir, file, err} }

// compare tells why database and log are not of the same member, or not of the same time.
func (m *member) compare(held held, written written) error {
	own := fmt.Sprintf("%x", written.Member)
	switch {
	case held.index > written.Index:
		return fmt.Errorf("it has entry %d, and the log in %s ends at %d: one of the two is older, or lost its end", held.index,
			m.log, written.Index)
	case held.index < written.snapshot && !m.hasSnapshot(written.snapshot):
		return fmt.Errorf("it ends at entry %d, and the log in %s goes on after %d: it is older, or of another member", held.index,
			m.log, written.snapshot)
	case held.index > 0 && held.index >= written.changed && !slices.Contains(held.members, own):
		return fmt.Errorf("it does not know member %s, whose log is in %s: it is of another cluster", own, m.log)
	}
	return nil
}

// hasSnapshot tells whether a database that another member has sent waits beside the own, to take its place.
func (m *member) hasSnapshot(index uint64) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(m.database), fmt.Sprintf("%016x.snap.db", index)))
	return err == nil
}
