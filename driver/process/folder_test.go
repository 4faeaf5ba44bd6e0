package process

import (
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
		if got, err := folderName(id); err != nil || got != want {
			t.Errorf("folderName(%q): got %q, %v; want %q", id, got, err, want)
		}
	}
	for _, id := range []string{"", strings.Repeat("a", folderNameMax+1), strings.Repeat("#", folderNameMax/3+1)} {
		if got, err := folderName(id); err == nil {
			t.Errorf("folderName(%q): got %q, want an error", id, got)
		}
	}
	for _, name := range []string{"", ".", "..", "A", "%4", "%41a%", "%61", "%5B", "a b"} {
		if got, err := folderID(name); err == nil {
			t.Errorf("folderID(%q): got %q, want an error", name, got)
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
		again, err := folderID(name)
		return err == nil && again == id
	}
	if err := quick.Check(back, nil); err != nil {
		t.Error(err)
	}
}
