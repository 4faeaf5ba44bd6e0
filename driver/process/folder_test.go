package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"starling/driver"
)

func TestFolderName(t *testing.T) {
	for id, want := range map[string]string{
		"web.server[2]#4711": "web.server%5b2%5d%234711",
		"etl/nightly":        "etl%2fnightly",
		"..":                 "%2e.",
		".hidden":            "%2ehidden",
		"A":                  "%41",
		"a":                  "a",
		"%41":                "%2541",
		"\x00":               "%00",
	} {
		if got, err := folderName(id); err != nil || got != want {
			t.Errorf("folderName(%q): got %q, %v; want %q", id, got, err, want)
		}
	}
	if got, err := folderName(""); err == nil {
		t.Errorf("got %q for no ID, want an error", got)
	}
	for _, name := range []string{".", "..", "A", "%4", "%41a%", "%61", "%5B", "a b", "a~",
		"a~0123456789abcdef0123456789abcdef"} {
		if got, err := folder(name).id(); err == nil || errors.Is(err, errNoID) {
			t.Errorf("%q: got the ID %q and %v, want that it is no folder of a task", name, got, err)
		}
	}
}

func TestFolderNameReverses(t *testing.T) {
	back := func(id string) bool {
		if len(id) == 0 || len(id) > folderNameMax/3 {
			return true
		}
		name, err := folderName(id)
		if err != nil || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") || name != strings.ToLower(name) {
			return false
		}
		again, err := folder(name).id()
		return err == nil && again == id
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
}

// TestFolderNameShortened wants names of bounded length that differ as the IDs do, and folders that tell their IDs.
func TestFolderNameShortened(t *testing.T) {
	for _, id := range []string{strings.Repeat("a", folderNameMax+1), strings.Repeat("/", 224),
		strings.Repeat("é", 112) + "a"} {
		one, err1 := folderName(id)
		other, err2 := folderName(id + "b")
		if err1 != nil || err2 != nil || one == other || len(one) != folderNameMax || len(other) != folderNameMax ||
			strings.Contains(one, "/") {
			t.Errorf("got %q and %q (%v, %v), want two names of %d bytes", one, other, err1, err2, folderNameMax)
		}
		f := folder(filepath.Join(t.TempDir(), other))
		if err := os.Mkdir(string(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := f.id(); !errors.Is(err, errNoID) {
			t.Errorf("got %q and %v from a folder without an ID, want %v", got, err, errNoID)
		}
		if err := f.keepID(id + "b"); err != nil {
			t.Fatal(err)
		}
		if got, err := f.id(); err != nil || got != id+"b" {
			t.Errorf("got %q and %v, want %q", got, err, id+"b")
		}
	}
}

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
