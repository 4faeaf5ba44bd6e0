package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
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
		if got, err := FolderName(id); err != nil || got != want {
			t.Errorf("FolderName(%q): got %q, %v; want %q", id, got, err, want)
		}
	}
	if got, err := FolderName(""); err == nil {
		t.Errorf("got %q for no ID, want an error", got)
	}
	for _, name := range []string{".", "..", "A", "%4", "%41a%", "%61", "%5B", "a b", "a~",
		"a~0123456789abcdef0123456789abcdef"} {
		if got, err := IDOf(name); err == nil || errors.Is(err, ErrNoID) {
			t.Errorf("%q: got the ID %q and %v, want that it is no folder of a task", name, got, err)
		}
	}
}

func TestFolderNameReverses(t *testing.T) {
	back := func(id string) bool {
		if len(id) == 0 || len(id) > FolderNameMax/3 {
			return true
		}
		name, err := FolderName(id)
		if err != nil || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") || name != strings.ToLower(name) {
			return false
		}
		again, err := IDOf(name)
		return err == nil && again == id
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
}

// TestFolderNameShortened wants names of bounded length that differ as the IDs do, and folders that tell their IDs.
func TestFolderNameShortened(t *testing.T) {
	for _, id := range []string{strings.Repeat("a", FolderNameMax+1), strings.Repeat("/", 224),
		strings.Repeat("é", 112) + "a"} {
		one, err1 := FolderName(id)
		other, err2 := FolderName(id + "b")
		if err1 != nil || err2 != nil || one == other || len(one) != FolderNameMax || len(other) != FolderNameMax ||
			strings.Contains(one, "/") {
			t.Errorf("got %q and %q (%v, %v), want two names of %d bytes", one, other, err1, err2, FolderNameMax)
		}
		f := filepath.Join(t.TempDir(), other)
		if err := os.Mkdir(f, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := IDOf(f); !errors.Is(err, ErrNoID) {
			t.Errorf("got %q and %v from a folder without an ID, want %v", got, err, ErrNoID)
		}
		if err := KeepID(f, id+"b"); err != nil {
			t.Fatal(err)
		}
		if got, err := IDOf(f); err != nil || got != id+"b" {
			t.Errorf("got %q and %v, want %q", got, err, id+"b")
		}
	}
}
