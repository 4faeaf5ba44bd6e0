package quorum

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"starling/journal/etcd/datadir"
)

// TestRecoveryIsCompleted cuts a recovery off before and after its decision: what was only tried leaves everything as
// it was, and what was decided is done by whoever comes next.
func TestRecoveryIsCompleted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a member")
	}
	t.Parallel()
	c := config(t, "a", nil)
	n := begin(t, c)
	append1(t, n, 1)
	must(t, n.Close())
	_, err := Recover(limited(t), "a", c.Dir, io.Discard)
	must(t, err)
	complete := func(want bool) {
		t.Helper()
		if done, err := Complete(c.Dir, c.File); done != want || err != nil {
			t.Errorf("completed: got %t and %v, want %t", done, err, want)
		}
	}
	here := func(names ...string) {
		t.Helper()
		for suffix, want := range map[string]bool{"": false, copySuffix: false, chosenSuffix: false, oldSuffix: false} {
			for _, name := range names {
				want = want || name == suffix
			}
			if got := datadir.HasMember(c.Dir + suffix); got != want {
				t.Errorf("a member in %s%s: got %t, want %t", filepath.Base(c.Dir), suffix, got, want)
			}
		}
	}
	complete(false)
	here("", copySuffix)

	// Of an earlier recovery there may be what was before; a copy that nobody decided for stays one.
	must(t, os.Rename(c.Dir, c.Dir+oldSuffix))
	complete(false)
	here(copySuffix, oldSuffix)
	must(t, os.Rename(c.Dir+oldSuffix, c.Dir))

	must(t, os.Rename(c.Dir+copySuffix, c.Dir+chosenSuffix)) // it is decided
	complete(true)
	here("", oldSuffix)
	must(t, os.WriteFile(c.File, []byte("{}"), 0o600))
	must(t, os.Rename(c.Dir, c.Dir+chosenSuffix))
	complete(true)
	here("", oldSuffix)
	if _, err := os.Stat(c.File); !os.IsNotExist(err) {
		t.Errorf("got %v, want that the others are forgotten", err)
	}

	made, err := Recover(limited(t), "a", c.Dir, io.Discard)
	must(t, err)
	must(t, made.Keep(c.File))
	here("", oldSuffix)
	if head, err := begin(t, c).Journal().Head(limited(t)); head != 1 || err != nil {
		t.Errorf("got head %d and %v, want 1", head, err)
	}
}
