// Package screen keeps the terminal of a session while nobody sees it, in a process of its own that outlives those who
// look.
//
// A folder is one session: what it is about, and a socket at which it is seen. Who attaches is shown the end of what
// was shown before, and then all that comes; another who attaches takes its place. A session ends with its program,
// tells its status once, and is ended when nobody has attached for long.
package screen

import (
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/record"
)

const (
	socketName  = "socket"
	aboutRecord = "about.json"
)

// answerMax is how long the process of a session has to answer, and a peer to say what it wants.
const answerMax = 5 * time.Second

// pathMax is the longest path of a socket that every system takes.
const pathMax = 90

// message is what both sides send: a peer what is typed, the session what is shown.
type message struct {
	// Ask asks only how the session stands, which Attached and Ended answer.
	Ask  bool
	Data []byte
	Size driver.Size
	// Ended tells how the program ended; with an Error it could not be started, because it is not there or otherwise.
	Ended    bool
	Code     int
	Error    string
	NotThere bool
	// Attached tells that somebody sees it, Taken that another does so from now on.
	Attached, Taken bool
}

// socketFile is what the process of a session is started with, after the standard files.
const socketFile = 3

// Begin makes the folder of a session and starts its process, by a command that calls Assigned, and then Serve, which
// removes the folder.
func Begin(dir string, command []string, about driver.SessionStatus, assignment any) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	err := record.Write(dir, aboutRecord, about)
	if err == nil {
		err = begin(dir, command, assignment)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func begin(dir string, command []string, assignment any) error {
	listener, err := listen(dir)
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	socket, err := listener.File()
	if err = errors.Join(err, listener.Close()); err != nil {
		return err
	}
	defer socket.Close()
	input, assign, err := os.Pipe()
	if err != nil {
		return err
	}
	defer assign.Close()
	defer input.Close()
	words, err := os.OpenFile(filepath.Join(dir, "words"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	process, err := os.StartProcess(command[0], command, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "PATH=" + os.Getenv("PATH")},
		Files: []*os.File{input, words, words, socketFile: socket},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	go func() { _, _ = process.Wait() }() // ends with the session, or this process
	return gob.NewEncoder(assign).Encode(assignment)
}

// Assigned reads what Begin was given, in the process of the session.
func Assigned(dir string, assignment any) error {
	syscall.CloseOnExec(socketFile)
	if err := gob.NewDecoder(os.Stdin).Decode(assignment); err != nil {
		return errors.Join(fmt.Errorf("read the assignment: %w", err), os.RemoveAll(dir))
	}
	return nil
}

// at calls with a path of the socket that is short enough.
func at(dir string, do func(path string) error) error {
	path := filepath.Join(dir, socketName)
	if len(path) <= pathMax {
		return do(path)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName))
}

func listen(dir string) (listener *net.UnixListener, err error) {
	err = at(dir, func(path string) error {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	return listener, err
}

func dial(dir string) (conn *net.UnixConn, err error) {
	err = at(dir, func(path string) error {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	return conn, err
}

// List returns the sessions whose folders lie in one, oldest first. Those whose process is gone are removed.
func List(folder string) []driver.SessionStatus {
	entries, _ := os.ReadDir(folder) // none is there yet
	var all []driver.SessionStatus
	for _, entry := range entries {
		dir := filepath.Join(folder, entry.Name())
		var about driver.SessionStatus
		if known, err := record.Read(dir, aboutRecord, &about); !known || err != nil {
			continue
		}
		stands, err := ask(dir)
		if err != nil {
			if strings.Contains(err.Error(), "refused") {
				_ = os.RemoveAll(dir) // the next look tries again
			}
			continue
		}
		about.Attached, about.Ended = stands.Attached, stands.Ended
		all = append(all, about)
	}
	slices.SortFunc(all, func(a, b driver.SessionStatus) int { return a.Began.Compare(b.Began) })
	return all
}

// ask asks how a session stands.
func ask(dir string) (answer message, err error) {
	conn, err := dial(dir)
	if err != nil {
		return answer, err
	}
	defer conn.Close()
	err = conn.SetDeadline(time.Now().Add(answerMax))
	if err == nil {
		err = gob.NewEncoder(conn).Encode(message{Ask: true})
	}
	if err == nil {
		err = gob.NewDecoder(conn).Decode(&answer)
	}
	return answer, err
}
