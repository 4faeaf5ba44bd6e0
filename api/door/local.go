package door

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"starling/terms/access"
	"starling/trust"
)

// socketBytesMax is the longest path of a socket that all systems take.
const socketBytesMax = 103

// listenLocal listens on a socket that is for this process's user, and for the group's members if there is one.
func listenLocal(path, group string) (net.Listener, error) {
	if len(path) > socketBytesMax {
		return nil, fmt.Errorf("the path %s is too long for a socket\nhint: set XDG_RUNTIME_DIR to a folder with a shorter path", path)
	}
	folder := filepath.Dir(path)
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755 // the socket has a mode of its own, and others should learn why they are not let in
	}
	if err := os.MkdirAll(folder, mode); err != nil {
		return nil, fmt.Errorf("make the folder of the socket for this machine's users: %w", err)
	}
	if mode == 0o700 && group != "" {
		if err := setMode(folder, group, 0o710); err != nil {
			return nil, fmt.Errorf("let the group %s into the folder of the socket: %w", group, err)
		}
	}
	// Where the address is this process's alone, so is the socket that is named by it: what lies there was left behind.
	if there, err := os.Lstat(path); err == nil && there.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("replace the socket for this machine's users: %s is there and is not a socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace the socket for this machine's users: %w", err)
	}
	listener, err := net.Listen("unix", path)
	switch {
	case err == nil && group == "":
		err = os.Chmod(path, 0o600)
	case err == nil:
		err = setMode(path, group, 0o660)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for this machine's users: %w", err)
	}
	return listener, nil
}

// setMode gives a file to a group.
func setMode(path, group string, mode fs.FileMode) error {
	found, err := user.LookupGroup(group)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(found.Gid)
	if err != nil {
		return err
	}
	return errors.Join(os.Chown(path, -1, number), os.Chmod(path, mode))
}

// localListener finds out who is at the other end of each connection.
type localListener struct {
	net.Listener
	caller func(*net.UnixConn) caller
}

// Accept implements net.Listener.
func (l localListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &localConn{connection, l.caller(connection.(*net.UnixConn))}, nil
}

// localConn is a connection of a user of this machine.
type localConn struct {
	net.Conn
	caller caller
}

// Address is the user, as a connlimit.Listener asks for it.
func (c *localConn) Address() string { return c.caller.Name }

// localCaller returns a function that tells who is at the other end of a connection to a node: root, this process's
// user and the group's members are admins.
func localCaller(node, group string) func(*net.UnixConn) caller {
	return func(connection *net.UnixConn) caller {
		credentials, err := credentialsOf(connection)
		if err != nil {
			return caller{refusal: fmt.Sprintf("this peer cannot find out who calls: %v", err)}
		}
		name := strconv.Itoa(credentials.uid)
		if account, err := user.LookupId(name); err == nil {
			name = account.Username
		}
		who := caller{Identity: trust.Identity{Kind: access.OfLocal, Name: name + "@" + node, Role: access.Admin}}
		isOwner := credentials.uid == 0 || credentials.uid == os.Geteuid()
		switch {
		case credentials.isTask:
			who.Kind, who.refusal = access.OfAnyone, "a task has no business at this socket: it is answered at STARLING_API, "+
				"with the credentials in STARLING_CREDENTIALS"
		case !isOwner && !isMember(credentials.uid, group):
			who.Kind, who.refusal = access.OfAnyone, fmt.Sprintf("user %s may not use this peer, which answers root, its own user"+
				" and its admin_group: ask an admin for `starling user add %s --role ROLE`", name, name)
		}
		return who
	}
}

// isMember tells whether a user belongs to a group.
func isMember(uid int, group string) bool {
	if group == "" {
		return false
	}
	account, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	found, err := user.LookupGroup(group)
	if err != nil {
		return false
	}
	groups, err := account.GroupIds()
	return err == nil && slices.Contains(groups, found.Gid)
}

// localCredentials are what the kernel tells of a process at the other end of a socket.
type localCredentials struct {
	uid int
	// isTask tells that it has its own processes' numbers, as tasks have and users do not.
	isTask bool
}
