package drivertest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/driver"
)

// testKeepsFailed forgets tasks that fail, and finds what they left; of others there is nothing.
func testKeepsFailed(t *testing.T, b *bench) {
	const secret = "a password of the task"
	fail := func(id string, code string) (folder string) {
		task := b.task(id, "leave", code)
		task.Private = []driver.File{{Path: "password", Content: []byte(secret), InMemory: true}}
		task.Files = &driver.FileSet{Version: 1, Files: []driver.File{{Path: "key", Content: []byte(secret), Secret: true}}}
		b.startTask(t, task)
		b.exited(t, id)
		folder = strings.TrimSpace(b.output(t, id, driver.Stdout))
		b.forget(t, id)
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("the folder %q is still there after Forget (%v)", folder, err)
		}
		return folder
	}
	for i := range 4 {
		folder := fail(fmt.Sprintf("web.server[0]#%d", i), "3")
		b.wantLeft(t, fmt.Sprintf("web.server[0]#%d", i), folder)
	}
	b.wantGone(t, "web.server[0]#0") // of one job the last three are kept
	other := fail("other.task[0]#4", "3")
	if fail("fine", "0"); b.machine.Container == nil {
		b.start(t, "elsewhere", "signal", "9") // and leaves nothing
		b.exited(t, "elsewhere")
		b.forget(t, "elsewhere")
		b.wantGone(t, "elsewhere")
	}
	b.startReady(t, "stopped", "terminate", "3")
	b.stop(t, "stopped", longGrace)
	b.exited(t, "stopped")
	b.forget(t, "stopped")
	b.reopen(t, func() {})
	b.wantLeft(t, "other.task[0]#4", other)
	for _, id := range []string{"fine", "stopped", "unknown"} {
		b.wantGone(t, id)
	}
	err := filepath.WalkDir(b.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), secret) {
			t.Errorf("there is a secret in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// wantLeft checks what a failed task left in its folder.
func (b *bench) wantLeft(t *testing.T, id, folder string) {
	t.Helper()
	root, err := b.Folder(id)
	if err != nil {
		t.Errorf("the folder of %s: %v", id, err)
		return
	}
	defer root.Close()
	if b.machine.Container == nil {
		folder = ""
	}
	for _, path := range []string{"core", "deep/log"} {
		text, err := root.ReadFile(filepath.Join(".", folder, path))
		if err != nil || string(text) != "left" {
			t.Errorf("%s of %s: got %q (%v)", path, id, text, err)
		}
	}
}

func (b *bench) wantGone(t *testing.T, id string) {
	t.Helper()
	root, err := b.Folder(id)
	if err == nil {
		root.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("the folder of %s: got error %v, want that it ended", id, err)
	}
}
