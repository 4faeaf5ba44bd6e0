package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"starling/driver"
	"starling/driver/program"
	"starling/driver/ramdisk"
	"starling/driver/record"
)

// The files of a task lie in files/v<version> of its folder, and files/current is a symbolic link to one of these. So
// who opens files below the link has one version or the other, and who resolves it once has all files of that version
// for at least versionLife, however many newer ones come meanwhile, up to versionsMax.

const (
	filesRecord   = "files.json"
	currentFiles  = "current"
	versionPrefix = "v"
	privateFolder = "private.d" // older programs made a file called private
	// versionLife is how long a version is kept after a newer one has come; the last versionsKept are kept longer. In a
	// burst versionsMax bounds the folder.
	versionLife  = time.Minute
	versionsKept = 2
	versionsMax  = 1000
)

func (f folder) files() string { return f.file("files") }

// FilesFolder returns the path of the link.
func (d *Driver) FilesFolder(id string) string {
	name, err := record.FolderName(id)
	if err != nil {
		return "" // Start refuses it
	}
	return filepath.Join(folder(filepath.Join(d.tasksDir(), name)).files(), currentFiles)
}

func (f folder) private() string { return f.file(privateFolder) }

// PrivateFolder returns the path of the folder with the files that are the task's alone. The folder itself is the
// driver's, so that nothing that a task does there leads elsewhere.
func (d *Driver) PrivateFolder(id string) string {
	name, err := record.FolderName(id)
	if err != nil {
		return "" // Start refuses it
	}
	return folder(filepath.Join(d.tasksDir(), name)).private()
}

// keepPrivate makes that folder. The account of a container, which is not known yet, gets the files later.
func (t *task) keepPrivate(files []driver.File, name string) error {
	if files == nil {
		return nil
	}
	account, err := t.account(name)
	if err == nil {
		err = os.Mkdir(t.folder.private(), 0o755)
	}
	if err == nil && slices.ContainsFunc(files, func(f driver.File) bool { return f.InMemory }) {
		err = ramdisk.Mount(t.folder.private(), 0o755)
	}
	if err == nil {
		_, err = t.folder.putPrivate(files, account)
	}
	return err
}

// RenewPrivate replaces such files. They belong to whom those belong that are there.
func (d *Driver) RenewPrivate(id string, files []driver.File) error {
	t, status := d.status(id)
	if t == nil || status.State != driver.Running {
		return nil
	}
	there, err := os.ReadDir(t.folder.private())
	there = slices.DeleteFunc(there, os.DirEntry.IsDir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("renew what is private of task %q: %w", id, err)
	}
	account, err := t.account("")
	if t.origin.Runtime != "" && err == nil && account == nil {
		err = errors.New("its container does not run yet")
	}
	if err == nil && t.origin.Runtime == "" {
		account, err = ownerOf(there[0])
	}
	var signals []syscall.Signal
	if err == nil {
		signals, err = t.folder.putPrivate(files, account)
	}
	for _, signal := range signals {
		err = errors.Join(err, d.order(id, signalOrder, int(signal)))
	}
	if err != nil {
		return fmt.Errorf("renew what is private of task %q: %w", id, err)
	}
	return nil
}

// ownerOf is the account that a file belongs to.
func ownerOf(file os.DirEntry) (*syscall.Credential, error) {
	info, err := file.Info()
	if err != nil {
		return nil, err
	}
	status := info.Sys().(*syscall.Stat_t) // as on all systems that this package is built for
	return &syscall.Credential{Uid: status.Uid, Gid: status.Gid}, nil
}

// putPrivate writes files that are an account's alone, each before it has its name. It returns what the task is to be
// sent for those that it had with another content.
func (f folder) putPrivate(files []driver.File, account *syscall.Credential) (signals []syscall.Signal, err error) {
	for _, file := range files {
		if !filepath.IsLocal(file.Path) {
			return nil, fmt.Errorf("file %q does not lie within its folder", file.Path)
		}
		path := filepath.Join(f.private(), file.Path)
		fresh := path + ".new"
		before, missing := os.ReadFile(path)
		if missing == nil && file.OnChange != 0 && !bytes.Equal(before, file.Content) {
			signals = append(signals, file.OnChange)
		}
		if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(fresh, file.Content, secretMode))
		if err == nil && account != nil {
			err = os.Chown(fresh, int(account.Uid), int(account.Gid))
		}
		if err == nil {
			err = os.Rename(fresh, path)
		}
		if err != nil {
			return nil, err
		}
	}
	return signals, nil
}

// Renew replaces the files of a running task and then sends the signal. The version is noted last, so that who died
// in between does it all again.
func (d *Driver) Renew(id string, files driver.FileSet, signal syscall.Signal) error {
	t, status := d.status(id)
	if t == nil || status.State != driver.Running || status.FilesVersion >= files.Version {
		return nil
	}
	account, err := t.account(files.User)
	if err == nil {
		err = t.folder.putFiles(&files, account)
	}
	if err == nil && signal != 0 {
		err = d.order(id, signalOrder, int(signal))
	}
	if err == nil {
		err = t.folder.write(filesRecord, files.Version)
	}
	if err != nil {
		return fmt.Errorf("renew the files of task %q: %w", id, err)
	}
	d.mu.Lock()
	t.files = files.Version
	d.mu.Unlock()
	d.tell()
	return nil
}

// account is the one that a task's secret files belong to. That of a container is known when it runs.
func (t *task) account(name string) (*syscall.Credential, error) {
	if t.origin.Runtime == "" {
		return program.Credential(name)
	}
	var record started
	_, err := t.folder.read(startedRecord, &record)
	return record.Account, err
}

// startFiles gives a new task its files.
func (t *task) startFiles(files *driver.FileSet) error {
	if files == nil {
		return nil
	}
	account, err := t.account(files.User)
	if err != nil {
		return err
	}
	return errors.Join(t.folder.putFiles(files, account), t.folder.write(filesRecord, files.Version))
}

// putFiles makes the version the current one, and deletes those that are too old.
func (f folder) putFiles(files *driver.FileSet, account *syscall.Credential) error {
	name := fmt.Sprintf("%s%020d", versionPrefix, files.Version)
	link := filepath.Join(f.files(), currentFiles)
	if now, err := os.Readlink(link); err == nil && now == name {
		return nil
	}
	at := filepath.Join(f.files(), name)
	if err := errors.Join(os.RemoveAll(at), os.MkdirAll(at, 0o755)); err != nil {
		return err
	}
	for _, file := range files.Files {
		if err := putFile(at, &file, account); err != nil {
			return err
		}
	}
	fresh := link + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := errors.Join(os.Symlink(name, fresh), os.Rename(fresh, link)); err != nil {
		return err
	}
	return f.pruneFiles()
}

// secretMode is that of secret files, and of no others.
const secretMode = 0o600

// putFile writes one file below a folder, never elsewhere. A secret one is its owner's alone.
func putFile(at string, file *driver.File, account *syscall.Credential) error {
	if !filepath.IsLocal(file.Path) {
		return fmt.Errorf("file %q does not lie within its folder", file.Path)
	}
	path, mode := filepath.Join(at, file.Path), os.FileMode(0o644)
	if file.Secret {
		mode = secretMode
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, file.Content, mode); err != nil {
		return err
	}
	if account == nil || !file.Secret {
		return nil
	}
	return os.Chown(path, int(account.Uid), int(account.Gid))
}

// pruneFiles deletes the versions that nobody can be reading any more.
func (f folder) pruneFiles() error {
	entries, err := os.ReadDir(f.files())
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), versionPrefix) })
	var errs []error
	for i, old := range entries[:max(len(entries)-1-versionsKept, 0)] {
		// A version is superseded when the folder of the next one is filled.
		next, err := entries[i+1].Info()
		if err == nil && time.Since(next.ModTime()) < versionLife && len(entries)-i <= versionsMax {
			break
		}
		errs = append(errs, os.RemoveAll(filepath.Join(f.files(), old.Name())))
	}
	return errors.Join(errs...)
}
