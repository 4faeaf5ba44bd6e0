package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The program cmd/supervise stands at the end of this one where .ci/build has appended it: its bytes, their number in
// decimal digits, and the mark.
const (
	supervisorMark   = "starling supervisor"
	supervisorDigits = 20
	supervisorName   = "supervise"
)

// smallSupervisor puts the program that stands at the end of this one into the folder, and returns how to run it; nil
// if this one was built without. Then, or after an error, this one itself does what it would do.
func smallSupervisor(program, folder string) ([]string, error) {
	text, err := appended(program)
	if err != nil || text == nil {
		return nil, err
	}
	path := filepath.Join(folder, supervisorName)
	if there, err := os.ReadFile(path); err != nil || !bytes.Equal(there, text) {
		fresh := path + ".new"
		err := errors.Join(os.MkdirAll(folder, 0o711), os.WriteFile(fresh, text, 0o700), os.Rename(fresh, path))
		if err != nil {
			return nil, err
		}
	}
	if err := try(path); err != nil {
		return nil, fmt.Errorf("%s cannot be run here: %w", path, err)
	}
	return []string{path}, nil
}

// appended is what stands at the end of a program, nil if nothing does.
func appended(program string) ([]byte, error) {
	file, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	const tailBytes = supervisorDigits + int64(len(supervisorMark))
	tail := make([]byte, tailBytes)
	if _, err := file.ReadAt(tail, info.Size()-tailBytes); err != nil {
		return nil, err
	}
	if string(tail[supervisorDigits:]) != supervisorMark {
		return nil, nil
	}
	length, err := strconv.ParseInt(string(tail[:supervisorDigits]), 10, 64)
	if err != nil || length > info.Size()-tailBytes {
		return nil, fmt.Errorf("%s is damaged: build it again", program)
	}
	return io.ReadAll(io.NewSectionReader(file, info.Size()-tailBytes-length, length))
}

// Attempts to run a program that was just written: one that forks at that moment holds it open for writing until its
// own program begins.
const (
	attempts     = 50
	attemptPause = 10 * time.Millisecond
)

// try tells why a program cannot be run. Without arguments it only says how it is used.
func try(path string) error {
	for attempt := 1; ; attempt++ {
		err := exec.Command(path).Run()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return nil
		}
		if !errors.Is(err, syscall.ETXTBSY) || attempt == attempts {
			return err
		}
		time.Sleep(attemptPause)
	}
}
