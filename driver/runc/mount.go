package runc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// mountWord stands before the path at which a program is to mount what its standard input says.
const mountWord = "mount:"

// MountBy has another program mount, which calls MountFor: the libraries that mount the file system of an image cost
// memory in every program that has them, for as long as it runs.
func MountBy(command []string) Mounter {
	return func(path string, mounts ...specs.Mount) error {
		text, err := json.Marshal(mounts)
		if err != nil {
			return err
		}
		program := exec.Command(command[0], append(command[1:len(command):len(command)], mountWord+path)...)
		program.Stdin = bytes.NewReader(text)
		if words, err := program.CombinedOutput(); err != nil {
			return errors.New(cmp.Or(string(bytes.TrimSpace(words)), fmt.Sprintf("run %s: %v", command[0], err)))
		}
		return nil
	}
}

// MountFor mounts what the input says if the argument is one that MountBy gives a program, and says whether it is.
func MountFor(argument string, input io.Reader, mount Mounter) (asked bool, err error) {
	path, asked := strings.CutPrefix(argument, mountWord)
	if !asked {
		return false, nil
	}
	var mounts []specs.Mount
	if err := json.NewDecoder(input).Decode(&mounts); err != nil {
		return true, fmt.Errorf("read what to mount at %s: %w", path, err)
	}
	return true, mount(path, mounts...)
}
