// Package workdir tells what the working folder of an instance holds.
package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
)

const (
	// entriesMax bounds what is told of one folder, pageEntries what one answer tells.
	entriesMax  = 10_000
	pageEntries = 500
	// chunkBytes is the size of a piece of a file.
	chunkBytes = 32 << 10
)

// Send tells what a folder below the root holds, or a file. Nothing above the root is reached, whatever links say.
func Send(root *os.Root, name string, to func(*starlingv1.FilesResponse) error) error {
	name = cmp.Or(strings.TrimPrefix(path.Clean("/"+name), "/"), ".")
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return failure(name, err)
	case info.IsDir():
		return sendFolder(root, name, to)
	case !info.Mode().IsRegular():
		return &wire.Failure{Code: wire.Invalid,
			Reason: fmt.Sprintf("%s is neither a file nor a folder: %s", name, info.Mode())}
	}
	return sendFile(root, name, to)
}

// failure says what is wrong with a path.
func failure(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf("there is no %s", name)}
	case strings.Contains(err.Error(), "escapes"):
		return &wire.Failure{Code: wire.Invalid, Reason: fmt.Sprintf("%s leads out of the instance's folder", name)}
	}
	return fmt.Errorf("read %s: %w", name, err)
}

func sendFolder(root *os.Root, name string, to func(*starlingv1.FilesResponse) error) error {
	folder, err := root.Open(name)
	if err != nil {
		return failure(name, err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(entriesMax + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return failure(name, err)
	}
	more := len(names) > entriesMax
	names = names[:min(len(names), entriesMax)]
	slices.Sort(names)
	answer := &starlingv1.FilesResponse{More: more}
	for _, one := range names {
		if info, err := root.Lstat(path.Join(name, one)); err == nil { // it may be gone by now
			answer.Files = append(answer.Files, told(root, path.Join(name, one), info))
		}
		if len(answer.GetFiles()) == pageEntries {
			if err := to(answer); err != nil {
				return err
			}
			answer.Files = nil
		}
	}
	return to(answer) // of an empty folder, too
}

// told tells of a file.
func told(root *os.Root, name string, info fs.FileInfo) *starlingv1.FileInfo {
	m := &starlingv1.FileInfo{Name: info.Name(), Folder: info.IsDir(), Bytes: info.Size(), Mode: info.Mode().String(),
		Modified: timestamppb.New(info.ModTime())}
	if info.Mode()&fs.ModeSymlink != 0 {
		m.Mode = "l" + strings.TrimPrefix(m.GetMode(), "L") // as ls has it
		m.Link, _ = root.Readlink(name)
		m.Link = plain(m.GetLink())
	}
	if m.Name = plain(m.GetName()); m.GetName() != info.Name() {
		m.Mode, m.Folder = "?"+m.GetMode()[1:], false // it is shown, and cannot be asked for
	}
	return m
}

// plain returns a name as the protocol takes it: one that is not UTF-8 is quoted.
func plain(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name)
}

func sendFile(root *os.Root, name string, to func(*starlingv1.FilesResponse) error) error {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return failure(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file any more")
	}
	if err != nil {
		return failure(name, err)
	}
	if err := to(&starlingv1.FilesResponse{File: told(root, name, info)}); err != nil {
		return err
	}
	// One that grows is read as far as it went.
	from := io.LimitReader(file, info.Size())
	for {
		chunk := make([]byte, chunkBytes)
		n, err := io.ReadFull(from, chunk)
		if n > 0 {
			if err := to(&starlingv1.FilesResponse{Data: chunk[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return failure(name, err)
		}
	}
}
