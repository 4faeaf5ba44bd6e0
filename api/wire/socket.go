package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// UnixPrefix begins the address of a peer that is asked over a socket of this machine.
const UnixPrefix = "unix:"

const (
	socketSuffix = ".sock"
	// socketWithin bounds how long a socket of this machine may take to be connected to.
	socketWithin = time.Second
)

// systemFolder is where root's peers have their sockets.
func systemFolder() string {
	if runtime.GOOS == "linux" {
		return "/run/starling"
	}
	return "/var/run/starling"
}

// OwnSocketFolder is where this user's peers have their sockets.
func OwnSocketFolder() string {
	if os.Geteuid() == 0 {
		return systemFolder()
	}
	if folder := os.Getenv("XDG_RUNTIME_DIR"); folder != "" {
		return filepath.Join(folder, "starling")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("starling-%d", os.Geteuid()))
}

// SocketIn returns the path of the socket that belongs to the TCP address of a peer, within a folder.
func SocketIn(folder, address string) string {
	return filepath.Join(folder, address+socketSuffix)
}

// LocalPeer returns the address of a socket by which the peer at a TCP address is asked on this machine, "" if there
// is none; denied is one that does not let this user in. Without an address it is that of the only peer here.
func LocalPeer(address string) (local, denied string) {
	for _, folder := range []string{OwnSocketFolder(), systemFolder()} {
		if !isOurs(folder) {
			continue
		}
		pattern := "*"
		if address != "" {
			pattern = strings.NewReplacer("localhost:", "127.0.0.1:", "[", `\[`).Replace(address)
		}
		found, _ := filepath.Glob(SocketIn(folder, pattern)) // the pattern is well-formed
		var answering []string
		for _, path := range found {
			switch err := trySocket(path); {
			case err == nil:
				answering = append(answering, path)
			case errors.Is(err, fs.ErrPermission):
				denied = path
			}
		}
		if len(answering) == 1 {
			return UnixPrefix + answering[0], ""
		}
	}
	return "", denied
}

// isOurs tells whether a folder of sockets is this user's or root's, and nobody else may put sockets there.
func isOurs(folder string) bool {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}

func trySocket(path string) error {
	connection, err := net.DialTimeout("unix", path, socketWithin)
	if err != nil {
		return err
	}
	return connection.Close()
}

// youngFor is how long a socket may take from being made to being listened at, which is two system calls.
const youngFor = time.Minute

// SweepSockets deletes the sockets in a folder behind which there is no process any more.
func SweepSockets(folder string) error {
	found, err := filepath.Glob(SocketIn(folder, "*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range found {
		info, err := os.Stat(path)
		if err == nil && time.Since(info.ModTime()) > youngFor && errors.Is(trySocket(path), syscall.ECONNREFUSED) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
