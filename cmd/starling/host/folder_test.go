package host

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHoldFolder checks that a folder is held by one process, and that who comes waits for the lock of one that has
// ended, which a program that it was about to start may have for a moment.
func TestHoldFolder(t *testing.T) {
	path := t.TempDir()
	first, err := HoldFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HoldFolder(path); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("got %v, want that it is in use", err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if err := first.lock.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := first.lock.WriteAt(fmt.Appendln(nil, ended.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, first.Release)
	second, err := HoldFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
}
