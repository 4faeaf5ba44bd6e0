// Package assign hands tasks to the processes that own them: to each one after another, and never two at a time.
package assign

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"syscall"
)

// filesMax is how many open files go with a task.
const filesMax = 8

// Line is the end of a socket by which tasks are sent. The process at the other end ends with it, or with its task.
type Line struct {
	file    *os.File
	encoder *gob.Encoder // one for all tasks: the other end hears of each type once
}

// NewLine makes a line, and the other end, which is to be a process's standard input.
func NewLine() (*Line, *os.File, error) {
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = syscall.SetNonblock(ends[0], true) // so that Close ends a Send that waits
	file := os.NewFile(uintptr(ends[0]), "line")
	return &Line{file: file, encoder: gob.NewEncoder(file)}, os.NewFile(uintptr(ends[1]), "line"), nil
}

// Send sends what a task is, and open files.
func (l *Line) Send(task any, files []*os.File) error {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	var numbers []int
	for _, file := range files {
		numbers = append(numbers, int(file.Fd()))
	}
	var failed error
	err = raw.Write(func(line uintptr) bool {
		failed = syscall.Sendmsg(int(line), []byte{0}, syscall.UnixRights(numbers...), nil, 0)
		return !errors.Is(failed, syscall.EAGAIN)
	})
	if err := errors.Join(err, failed); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	return l.encoder.Encode(task)
}

// Close has the process at the other end wait for no other task.
func (l *Line) Close() error { return l.file.Close() }

// Receiver is the other end.
type Receiver struct {
	file    *os.File
	decoder *gob.Decoder
}

// NewReceiver returns one for the standard input.
func NewReceiver() *Receiver { return &Receiver{file: os.Stdin, decoder: gob.NewDecoder(os.Stdin)} }

// Receive waits for a task and returns the numbers of the files that came with it. It is io.EOF if none will come.
func (r *Receiver) Receive(task any) (files []int, err error) {
	rights := make([]byte, syscall.CmsgSpace(filesMax*4))
	var n, rightsBytes int
	for {
		n, rightsBytes, _, _, err = syscall.Recvmsg(int(r.file.Fd()), make([]byte, 1), rights, 0)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:rightsBytes])
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		numbers, err := syscall.ParseUnixRights(&message)
		if err != nil {
			return nil, err
		}
		files = append(files, numbers...)
	}
	for _, file := range files {
		syscall.CloseOnExec(file)
	}
	if err := r.decoder.Decode(task); err != nil {
		return nil, errors.Join(errors.New("only a part of it came"), err)
	}
	return files, nil
}
