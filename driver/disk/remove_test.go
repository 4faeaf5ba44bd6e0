package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemoveAll deletes folders that are nested deeper than this process may open files, with files beside them, links
// that lead out, and names like those that RemoveAll gives.
func TestRemoveAll(t *testing.T) {
	const files, depth = 300, 2000
	outside, folder := t.TempDir(), filepath.Join(t.TempDir(), "folder")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	for _, branch := range []string{"a", "b"} {
		path := filepath.Join(folder, branch) + strings.Repeat("/d", 1+depth/2)
		must(os.MkdirAll(path, 0o700), os.WriteFile(path+"/file", nil, 0o600), os.Symlink(outside, path+"/link"))
	}
	// twice as deep as a path can name
	must(os.Rename(filepath.Join(folder, "b"), filepath.Join(folder, "a")+strings.Repeat("/d", depth/2)+"/b"))
	must(os.MkdirAll(filepath.Join(folder, ".deeper-1", "full"), 0o700))
	for i := range 2 * namesAtOnce {
		must(os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600))
	}
	var before unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = files
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { must(unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	if err := RemoveAll(folder); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
	must(RemoveAll(folder), RemoveAll(filepath.Join(folder, "below")))
}
