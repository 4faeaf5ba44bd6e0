// Package program finds the program of a task on this machine, and the account that it runs as.
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"starling/driver"
)

// Missing is the error that the machine lacks what a program would be started with.
type Missing string

// Error implements error.
func (m Missing) Error() string { return string(m) }

// IsMissing tells whether a program could not be started because the machine lacks it, its user or its folder, or does
// not let it be run.
func IsMissing(err error) bool {
	var missing Missing
	var nobody user.UnknownUserError
	return errors.As(err, &missing) || errors.As(err, &nobody) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.ENOTDIR)
}

// Find returns the path of the task's program, as its own environment has it.
func Find(t driver.Task, workDir string) (string, error) {
	program := t.Command[0]
	if strings.Contains(program, "/") {
		path := program
		if !filepath.IsAbs(path) {
			path = filepath.Join(workDir, path)
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return "", Missing(fmt.Sprintf("program %q not found", path))
		}
		return path, nil
	}
	search, ok := Variable(t.Env, "PATH")
	if !ok {
		return "", Missing(fmt.Sprintf("program %q not found: the task's environment has no PATH; name the program with its "+
			"folder or set PATH", program))
	}
	for _, folder := range filepath.SplitList(search) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(workDir, folder)
		}
		path := filepath.Join(folder, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", Missing(fmt.Sprintf("program %q not found in PATH %q", program, search))
}

// Variable returns the value that a program finds in an environment.
func Variable(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// WithHome adds the home of the account that a task runs as, if its environment has none: a user that is its job's own
// is at home in its own folder.
func WithHome(env []string, name, own string) []string {
	if _, has := Variable(env, "HOME"); has {
		return env
	}
	if _, one := driver.OwnNumber(name); one {
		return append(env, "HOME="+own)
	}
	account, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if name != "" {
		account, err = user.Lookup(name)
	}
	if err != nil {
		return env // an account without a name has no home
	}
	return append(env, "HOME="+account.HomeDir)
}

// Credential returns the account to run as; nil is this process's own.
func Credential(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil
	}
	if number, own := driver.OwnNumber(name); own {
		return &syscall.Credential{Uid: number, Gid: number}, nil
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("run as %q: %w", name, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as %q: its user number: %w", name, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as %q: its group number: %w", name, err)
	}
	if uid == uint64(os.Getuid()) && os.Getuid() != 0 {
		return nil, nil // its own account, which it may not even name
	}
	result := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	groups, err := account.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("run as %q: its groups: %w", name, err)
	}
	for _, group := range groups {
		number, err := strconv.ParseUint(group, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("run as %q: its group %q: %w", name, group, err)
		}
		result.Groups = append(result.Groups, uint32(number))
	}
	return result, nil
}
