package process

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"starling/driver"
)

// executable is the path of the task's program, as its own environment has it.
func executable(t driver.Task, workDir string) (string, error) {
	program := t.Command[0]
	if strings.Contains(program, "/") {
		path := program
		if !filepath.IsAbs(path) {
			path = filepath.Join(workDir, path)
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("program %q not found", path)
		}
		return path, nil
	}
	search, ok := variable(t.Env, "PATH")
	if !ok {
		return "", fmt.Errorf("program %q not found: the task's environment has no PATH; name the program with its folder or set PATH", program)
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
	return "", fmt.Errorf("program %q not found in PATH %q", program, search)
}

// variable is the value that a program finds in an environment.
func variable(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// withHome adds the home of the account that a task runs as, if its environment has none: a user that is its job's own
// is at home in the task's folder.
func withHome(env []string, name string, f folder) []string {
	if _, has := variable(env, "HOME"); has {
		return env
	}
	if _, own := driver.OwnNumber(name); own {
		return append(env, "HOME="+f.work())
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

// credential is the account to run as; nil is this process's own.
func credential(name string) (*syscall.Credential, error) {
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
