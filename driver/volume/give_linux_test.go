package volume_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"starling/driver"
	"starling/driver/volume"
)

const somebody, another = 65533, 65534

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestGive gives a volume from one account to another.
func TestGive(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	k := &volume.Keeper{Dir: dir}
	v := driver.Volume{Set: "job.task[0]@1", Name: "data"}
	path, err := volume.Make(dir, v, &syscall.Credential{Uid: somebody, Gid: somebody})
	if err != nil {
		t.Fatal(err)
	}
	deep, linked := filepath.Join(path, "deep", "folder"), filepath.Join(path, "linked")
	err = errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "file"), nil, 0o600),
		os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(deep, "link")), os.Link(outside, linked))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.MakeVolume(v); err != nil || ownerOf(t, path) != somebody {
		t.Errorf("a volume that was there belongs to %d, want %d still (%v)", ownerOf(t, path), somebody, err)
	}
	if _, err := volume.Make(dir, v, &syscall.Credential{Uid: another, Gid: another}); err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{path, deep, filepath.Join(deep, "file"), filepath.Join(deep, "link")} {
		if got := ownerOf(t, one); got != another {
			t.Errorf("%s belongs to %d, want %d", one, got, another)
		}
	}
	if got := ownerOf(t, outside); got != 0 {
		t.Errorf("a file outside, to which links lead, belongs to %d", got)
	}
}

// TestGiveFollowsNoLinks has somebody put links in the place of folders while they are given.
func TestGiveFollowsNoLinks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	const folders = 100
	path, outside := t.TempDir(), t.TempDir()
	file := filepath.Join(outside, "file")
	err := os.WriteFile(file, nil, 0o600)
	for i := range folders {
		name := filepath.Join(path, fmt.Sprintf("d%d", i))
		err = errors.Join(err, os.Mkdir(name, 0o700), os.WriteFile(filepath.Join(name, "file"), nil, 0o600),
			os.Symlink(outside, filepath.Join(path, fmt.Sprintf("l%d", i))))
	}
	if err != nil {
		t.Fatal(err)
	}
	var swapping sync.WaitGroup
	over := make(chan struct{})
	swapping.Go(func() {
		for i := 0; ; i = (i + 1) % folders {
			select {
			case <-over:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(path, fmt.Sprintf("d%d", i)), unix.AT_FDCWD,
					filepath.Join(path, fmt.Sprintf("l%d", i)), unix.RENAME_EXCHANGE)
			}
		}
	})
	for try := range uint32(200) {
		// It may find a link where it saw a folder, and give up.
		_ = volume.Give(path, &syscall.Credential{Uid: somebody + try%2, Gid: somebody})
		if got := ownerOf(t, file); got != 0 {
			t.Errorf("after %d walks a file outside belongs to %d", try+1, got)
			break
		}
	}
	close(over)
	swapping.Wait()
}
