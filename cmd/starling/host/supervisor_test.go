package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program writes a program that ends with these bytes, and returns its path.
func program(t *testing.T, end string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "starling")
	if err := os.WriteFile(path, []byte("a program that is longer than the mark at its end"+end), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// appendix is what .ci/build appends for a small program.
func appendix(small string, length int) string {
	return fmt.Sprintf("%s%0*d%s", small, supervisorDigits, length, supervisorMark)
}

func TestSmallSupervisorIsTakenFromTheEndOfTheProgram(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "host")
	for _, word := range []string{"old", "new"} { // the second finds the first there
		small := fmt.Sprintf("#!/bin/sh\n[ $# = 0 ] && exit 2\necho %s $1\n", word)
		command, err := smallSupervisor(program(t, appendix(small, len(small))), folder)
		if err != nil || len(command) != 1 {
			t.Fatalf("got %q, %v, want one word", command, err)
		}
		said, err := exec.Command(command[0], "task").Output()
		if want := word + " task\n"; string(said) != want || err != nil {
			t.Errorf("it says %q, %v, want %q", said, err, want)
		}
	}
}

func TestNoSmallSupervisor(t *testing.T) {
	if command, err := smallSupervisor(program(t, ""), t.TempDir()); command != nil || err != nil {
		t.Errorf("a program without one: got %q, %v, want neither", command, err)
	}
	for name, end := range map[string]string{
		"longer than the whole": appendix("short", 4711),
		"cannot be run":         appendix("\x7fELF of another machine", 23),
	} {
		if command, err := smallSupervisor(program(t, end), t.TempDir()); command != nil || err == nil {
			t.Errorf("one that is %s: got %q, %v, want an error", name, command, err)
		}
	}
}
