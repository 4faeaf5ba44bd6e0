package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"starling/driver"
)

// TestReaderInABurst resolves the folder once, as the reference says, and reads its files while newer versions come.
func TestReaderInABurst(t *testing.T) {
	f := folder(t.TempDir())
	put := func(version uint64) {
		t.Helper()
		text := []byte(strconv.FormatUint(version, 10))
		files := []driver.File{{Path: "hosts", Content: text}, {Path: "members.json", Content: text}}
		if err := f.putFiles(&driver.FileSet{Version: version, Files: files}, nil); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	at, err := filepath.EvalSymlinks(filepath.Join(f.files(), currentFiles))
	if err != nil {
		t.Fatal(err)
	}
	for version := range uint64(50) {
		put(2 + version)
		for _, name := range []string{"hosts", "members.json"} {
			if text, err := os.ReadFile(filepath.Join(at, name)); err != nil || string(text) != "1" {
				t.Fatalf("after version %d: %s is %q, %v; want that of version 1", 2+version, name, text, err)
			}
		}
	}
	// What was superseded more than a minute ago goes, but for the last ones.
	versions := func() []os.DirEntry {
		t.Helper()
		all, err := os.ReadDir(f.files())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(e os.DirEntry) bool { return e.Name() == currentFiles })
	}
	for _, old := range versions() {
		if err := os.Chtimes(filepath.Join(f.files(), old.Name()), time.Time{}, time.Now().Add(-2*versionLife)); err != nil {
			t.Fatal(err)
		}
	}
	put(100)
	if left := len(versions()); left != 1+versionsKept {
		t.Errorf("%d versions are left, want the newest and %d", left, versionsKept)
	}
}
