package process_test

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"starling/driver"
)

// TestInheritedFilesStayHere has this process hold a pipe as if from whatever started it: tasks do not hold it, too.
func TestInheritedFilesStayHere(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	inherited, err := syscall.Dup(int(write.Fd()))
	if err := errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.start(t, driver.Task{ID: "long", Command: []string{"/bin/sleep", "1000"}})
	err = errors.Join(syscall.Close(inherited), read.SetReadDeadline(time.Now().Add(testTimeout/3)))
	if n, failed := read.Read(make([]byte, 1)); err != nil || failed != io.EOF {
		t.Errorf("read %d bytes (%v, %v) from a pipe that this process has closed, want the end", n, failed, err)
	}
}
