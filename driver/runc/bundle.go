package runc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"starling/driver/program"
	"starling/driver/ramdisk"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Container is one that is ready to be run.
type Container struct {
	// Program is the path of runc.
	Program string
	// Root are the mounts that make its root file system.
	Root []specs.Mount
	// Spec is the description, a specs.Spec in JSON. Its working directory is empty if the image names none.
	Spec []byte
	// User is the account that it runs as, in the words of its image: a name or number, perhaps with a group.
	User string
	// StopSignal is what it is asked to stop with, 0 for the usual one.
	StopSignal syscall.Signal
}

// Layer is the folder with what the container changes of its image, empty if there is none.
func (c *Container) Layer() string {
	for _, m := range c.Root {
		for _, option := range m.Options {
			if path, found := strings.CutPrefix(option, "upperdir="); found {
				return path
			}
		}
	}
	return ""
}

// Mounter mounts one file system above the other at a path.
type Mounter func(path string, mounts ...specs.Mount) error

// Bundle is a container with its root file system in place.
type Bundle struct {
	// Spec is what may be changed before Start.
	Spec    *specs.Spec
	program string
	dir     string
}

// name is what runc calls the container; there is one in each of its states.
const name = "task"

func statePath(dir string) string { return filepath.Join(dir, "runc") }
func rootPath(dir string) string  { return filepath.Join(dir, "root") }

// Open mounts the container's root file system below the folder, which is to be made, and finds its account there.
func Open(dir string, c *Container, mount Mounter) (*Bundle, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := ramdisk.Mount(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(rootPath(dir), 0o755); err != nil {
		return nil, err
	}
	if err := mount(rootPath(dir), c.Root...); err != nil {
		return nil, fmt.Errorf("mount the root file system: %w", err)
	}
	b := &Bundle{program: c.Program, dir: dir, Spec: &specs.Spec{}}
	if err := json.Unmarshal(c.Spec, b.Spec); err != nil {
		return nil, fmt.Errorf("read the container's description: %w", err)
	}
	b.Spec.Root.Path = rootPath(dir)
	return b, b.setAccount(c.User)
}

// Bind shows a folder of the machine at a path.
func (b *Bundle) Bind(source, path string, readOnly bool) {
	options := []string{"rbind", "rprivate", "nosuid", "nodev"}
	if readOnly {
		options = append(options, "ro")
	}
	b.Spec.Mounts = append(b.Spec.Mounts, specs.Mount{Destination: path, Source: source, Type: "bind", Options: options})
}

// Give gives the container devices of the machine, except those that it has already, and those that are not there.
func (b *Bundle) Give(paths []string) error {
	linux := b.Spec.Linux
	for _, path := range paths {
		if slices.ContainsFunc(linux.Devices, func(d specs.LinuxDevice) bool { return d.Path == path }) {
			continue
		}
		var info unix.Stat_t
		err := unix.Stat(path, &info)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("give the container %s: %w", path, err)
		}
		major, minor := int64(unix.Major(uint64(info.Rdev))), int64(unix.Minor(uint64(info.Rdev)))
		mode := os.FileMode(info.Mode & 0o777)
		linux.Devices = append(linux.Devices, specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor,
			FileMode: &mode, UID: &info.Uid, GID: &info.Gid})
		linux.Resources.Devices = append(linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c",
			Major: &major, Minor: &minor, Access: "rw"})
	}
	return nil
}

// Set sets variables of the environment; those that are set later win.
func (b *Bundle) Set(variables ...string) {
	env := &b.Spec.Process.Env
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		at := slices.IndexFunc(*env, func(has string) bool { return strings.HasPrefix(has, name+"=") })
		if at < 0 {
			*env = append(*env, variable)
		} else {
			(*env)[at] = variable
		}
	}
}

// CheckFolder tells why the container has no folder at a path.
func (b *Bundle) CheckFolder(path string) error {
	var info os.FileInfo
	var err error
	if source, below := b.bound(path); source != "" {
		info, err = os.Stat(filepath.Join(source, below))
	} else {
		var root *os.Root
		if root, err = os.OpenRoot(b.Spec.Root.Path); err != nil {
			return err
		}
		defer root.Close()
		info, err = root.Stat(strings.TrimLeft(path, "/"))
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("working directory %q: the container has no such folder", path)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("working directory %q: %w", path, syscall.ENOTDIR)
	}
	return nil // or something that only runc can find out
}

// bound is the folder of the machine that shows at or above a path, with the rest of it; "" for none.
func (b *Bundle) bound(path string) (source, below string) {
	longest := ""
	for _, m := range b.Spec.Mounts {
		rest, err := filepath.Rel(m.Destination, path)
		if err == nil && filepath.IsLocal(rest) && m.Type == "bind" && len(m.Destination) >= len(longest) {
			longest, source, below = m.Destination, m.Source, rest
		}
	}
	return source, below
}

// Start starts the container's program with these files as its standard ones, and returns its number. The calling
// process is its parent when runc has ended.
func (b *Bundle) Start(files []*os.File) (pid int, err error) {
	depth := func(m specs.Mount) int { return strings.Count(filepath.Clean(m.Destination), "/") }
	slices.SortStableFunc(b.Spec.Mounts, func(a, b specs.Mount) int { // one that lies in another must come after it
		return cmp.Compare(depth(a), depth(b))
	})
	text, err := json.Marshal(b.Spec)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "config.json"), text, 0o600); err != nil {
		return 0, err
	}
	log, numberFile := filepath.Join(b.dir, "log"), filepath.Join(b.dir, "pid")
	program := exec.Command(b.program, "--root", statePath(b.dir), "--log", log, "--log-format", "json",
		"run", "--detach", "--pid-file", numberFile, "--bundle", b.dir, name)
	program.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	program.Stdin, program.Stdout, program.Stderr = files[0], files[1], files[2]
	if err := program.Run(); err != nil {
		return 0, said(log, err)
	}
	number, err := os.ReadFile(numberFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(number))
}

// absences are how runc says that the image has not got the program, or nothing that can be run.
var absences = []string{
	"executable file not found", "no such file or directory", "permission denied", "exec format error",
}

// said is the last error in a log of runc, or else the one that is known.
func said(log string, known error) error {
	text, _ := os.ReadFile(log)
	for _, line := range slices.Backward(bytes.Split(bytes.TrimSpace(text), []byte("\n"))) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			text := "runc: " + strings.TrimPrefix(entry.Msg, "runc run failed: ")
			if slices.ContainsFunc(absences, func(how string) bool { return strings.Contains(text, how) }) {
				return program.Missing(text)
			}
			return errors.New(text)
		}
	}
	return fmt.Errorf("runc: %w", known)
}
