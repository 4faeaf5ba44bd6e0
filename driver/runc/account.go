package runc

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/moby/sys/user"
)

// setAccount finds an account in the image's own files, and has the program run as it. No name is root's.
func (b *Bundle) setAccount(name string) error {
	root, err := os.OpenRoot(b.Spec.Root.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	open := func(path string) io.Reader {
		text, _ := root.ReadFile(path) // an image need not have accounts
		return strings.NewReader(string(text))
	}
	account, err := user.GetExecUser(name, nil, open("etc/passwd"), open("etc/group"))
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

// Account is what the program runs as.
func (b *Bundle) Account() *syscall.Credential {
	return &syscall.Credential{Uid: b.Spec.Process.User.UID, Gid: b.Spec.Process.User.GID}
}
