package process_test

import (
	"bufio"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"starling/driver"
)

// TestSignalsThatNobodyExpects: a program that has only begun is not ended by a signal that something changed. It is
// told once when it has said what it does about that, of each kind by itself.
func TestSignalsThatNobodyExpects(t *testing.T) {
	b := newBench(t)
	said := filepath.Join(t.TempDir(), "said")
	script := `trap 'echo one' USR1; echo begun; until [ -e ` + said + ` ]; do sleep 0.01; done
		trap 'echo two; exit 7' HUP; while :; do sleep 0.01; done`
	b.start(t, driver.Task{ID: "late", Command: []string{"/bin/sh", "-c", script}})
	begun := time.Now()
	log, err := b.Logs(b.ctx, "late", driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	writes := func(want string) {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it wrote %q, want %q; it is %+v", lines.Text(), want, b.status("late"))
		}
	}
	writes("begun")
	for version, which := range []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGUSR1} {
		if err := b.Renew("late", driver.FileSet{Version: uint64(version + 1)}, which); err != nil {
			t.Fatal(err)
		}
	}
	writes("one")
	if age := time.Since(begun); age < 900*time.Millisecond {
		t.Errorf("it was told after %s, want a second: some runtimes answer signals before their programs do", age)
	}
	if err := os.WriteFile(said, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writes("two")
	if got := b.exited(t, "late"); got.ExitCode != 7 {
		t.Errorf("got %+v, want exit code 7", got)
	}
}
