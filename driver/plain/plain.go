// Package plain opens files that are always ready, such as those on disks and those that the kernel makes. Package os
// asks the runtime's poller to wait for each, which costs five system calls more.
package plain

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Number opens a file like os.OpenFile, and returns its number.
func Number(path string, flags int, mode os.FileMode) (file int, err error) {
	for {
		file, err = syscall.Open(path, flags|syscall.O_CLOEXEC, uint32(mode.Perm()))
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, syscall.EINTR):
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Open opens a file like os.OpenFile.
func Open(path string, flags int, mode os.FileMode) (*os.File, error) {
	file, err := Number(path, flags, mode)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(file), path), nil
}

// Read returns what is in a file.
func Read(path string) ([]byte, error) {
	file, err := Number(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	var info syscall.Stat_t
	_ = syscall.Fstat(file, &info)
	text, err := rest(file, int(info.Size))
	if err != nil {
		err = &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text, err
}

// Rest reads an open file to its end and closes it.
func Rest(file int) ([]byte, error) { return rest(file, 0) }

// rest expects a size.
func rest(file, size int) ([]byte, error) {
	defer syscall.Close(file)
	text := make([]byte, 0, max(size+1, 512))
	for {
		n, err := syscall.Read(file, text[len(text):cap(text)])
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return nil, err
		case n == 0:
			return text, nil
		default:
			if text = text[:len(text)+n]; len(text) == cap(text) {
				text = append(text, make([]byte, len(text))...)[:len(text)]
			}
		}
	}
}

// Write writes to a file that is open. One that takes nothing is an error, as for os.File.
func Write(file int, text []byte) error {
	for len(text) > 0 {
		n, err := syscall.Write(file, text)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		text = text[n:]
	}
	return nil
}
