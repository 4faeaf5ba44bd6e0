package runc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/containerd/continuity/fs"
	"github.com/moby/sys/user"
)

// setAccount finds an account in the image's own files, and has the program run as it. No name is root's.
func (b *Bundle) setAccount(name string) error {
	root, err := os.OpenRoot(b.Spec.Root.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	users, err := readAccounts(root, "etc/passwd")
	groups, unread := readAccounts(root, "etc/group")
	if err = errors.Join(err, unread); err != nil {
		return err
	}
	account, err := user.GetExecUser(name, nil, bytes.NewReader(users), bytes.NewReader(groups))
	if err != nil {
		return fmt.Errorf("run as %q: the image's /etc/passwd and /etc/group: %w", name, err)
	}
	to := &b.Spec.Process.User
	to.UID, to.GID = uint32(account.Uid), uint32(account.Gid)
	for _, group := range account.Sgids {
		to.AdditionalGids = append(to.AdditionalGids, uint32(group))
	}
	for i := range b.Spec.Linux.Devices { // as CDI has those of which it states no owner
		d := &b.Spec.Linux.Devices[i]
		d.UID, d.GID = cmp.Or(d.UID, &to.UID), cmp.Or(d.GID, &to.GID)
	}
	return nil
}

// accountsBytesMax bounds a file of accounts: the machine reads all of it, for whoever made the image.
const accountsBytesMax = 1 << 20

// readAccounts reads a file of the image, which need not have it. Links are followed as programs of the image find
// them: absolute ones begin at its root. What is no file is not opened: who opens a FIFO may wait for ever, and who
// opens a device may have the machine do something.
func readAccounts(root *os.Root, path string) ([]byte, error) {
	at, err := fs.RootPath(root.Name(), path)
	if err == nil {
		at, err = filepath.Rel(root.Name(), at)
	}
	var info os.FileInfo
	if err == nil {
		info, err = root.Stat(at)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the image's /%s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the image's /%s is no file", path)
	}
	file, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, accountsBytesMax+1))
	if len(text) > accountsBytesMax {
		return nil, fmt.Errorf("the image's /%s has more than %d bytes", path, accountsBytesMax)
	}
	return text, err
}

// Account is what the program runs as.
func (b *Bundle) Account() *syscall.Credential {
	return &syscall.Credential{Uid: b.Spec.Process.User.UID, Gid: b.Spec.Process.User.GID}
}
