package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"starling/driver"
	"starling/driver/cgroup"
	"starling/driver/record"
	"starling/driver/screen"
	"starling/driver/volume"
)

// sessionsFolder holds a folder for each session that outlives this process.
const sessionsFolder = "sessions"

// unattendedDefault is how long a session goes on that nobody looks at.
const unattendedDefault = 10 * time.Minute

// sessionAssignment is what the process of a session is told on its standard input. It is stored nowhere.
type sessionAssignment struct {
	Task       driver.Task
	Env        []string
	Drain      time.Duration
	Folder     folder
	Origin     origin
	Place      cgroup.Place
	Volumes    string
	Namespaces bool
	Free       bool
	Unattended time.Duration
}

func (d *Driver) sessionDir(id, name string) (string, error) {
	of, err := record.FolderName(id + " " + name)
	return filepath.Join(d.config.Dir, sessionsFolder, of), err
}

// execKept has a process of its own run the program of a session, and attaches to it.
func (d *Driver) execKept(ctx context.Context, known *task, t driver.Task, s driver.Session) (int, error) {
	dir, err := d.sessionDir(t.ID, s.Name)
	if err != nil {
		return driver.NoExitCode, err
	}
	about := driver.SessionStatus{Task: t.ID, Name: s.Name, Command: t.Command, By: s.By, Began: time.Now()}
	begun, err := d.sessions.Take(filepath.Dir(dir), about)
	if err != nil {
		return driver.NoExitCode, err
	}
	d.give(&t)
	t.Private, t.Files = nil, nil
	a := &sessionAssignment{Task: t, Env: s.Env, Drain: s.Drain, Folder: known.folder, Origin: known.origin,
		Place: d.place, Volumes: d.Dir, Free: d.config.Free,
		Unattended: cmp.Or(d.config.UnattendedSessions, unattendedDefault)}
	d.mu.Lock()
	a.Namespaces = d.namespaces
	d.mu.Unlock()
	err = screen.Begin(dir, append(slices.Clip(d.config.Small), dir), about, a)
	begun()
	if err != nil {
		return driver.NoExitCode, fmt.Errorf("begin the session %s: %w", s.Name, err)
	}
	return screen.Attach(ctx, dir, s)
}

// Attach goes on with a session.
func (d *Driver) Attach(ctx context.Context, id string, s driver.Session) (int, error) {
	dir, err := d.sessionDir(id, s.Name)
	if err != nil {
		return driver.NoExitCode, err
	}
	return screen.Attach(ctx, dir, s)
}

// Sessions lists those beside a task.
func (d *Driver) Sessions(id string) []driver.SessionStatus {
	return slices.DeleteFunc(screen.List(filepath.Join(d.config.Dir, sessionsFolder)),
		func(s driver.SessionStatus) bool { return s.Task != id })
}

// keepSession is the whole life of the process of a session.
func keepSession(dir string) int {
	var a sessionAssignment
	err := screen.Assigned(dir, &a)
	if err == nil {
		d := &Driver{config: Config{Free: a.Free}, place: a.Place, namespaces: a.Namespaces}
		d.Keeper = volume.Keeper{Dir: a.Volumes}
		known := newTask(a.Task.ID, a.Folder)
		known.origin = a.Origin
		k := &screen.Keeper{Dir: dir, Task: string(a.Folder), Unattended: a.Unattended, Ended: func() bool {
			known, _ := a.Folder.read(endedRecord, &ended{})
			return known
		}}
		err = k.Serve(func(ctx context.Context, s driver.Session) (int, error) {
			s.Env, s.Drain = a.Env, a.Drain
			return d.execHere(ctx, known, a.Task, s)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
