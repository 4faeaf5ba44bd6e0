// Package record keeps values as JSON files in a folder. After a crash of this process there is the whole of a record,
// or what was there before.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"starling/driver/plain"
)

// freshSuffix is of a record that is being stored.
const freshSuffix = ".new"

// Write stores a record.
func Write(folder, name string, value any) error {
	fresh := filepath.Join(folder, name+freshSuffix)
	if err := store(fresh, value, false); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(folder, name))
}

// WriteDurably stores a record where nothing is but room for it: after a crash of the machine, too, there is the whole
// record or none.
func WriteDurably(folder, name string, value any) error {
	if err := Fill(folder, name, value); err != nil {
		return err
	}
	return Sync(folder)
}

// Fill is WriteDurably for a record whose name is durable: room was set aside for it before another was written so.
func Fill(folder, name string, value any) error {
	return store(filepath.Join(folder, name), value, true)
}

// store writes a record in the place of what is there, filled up with blanks. No part of it can be taken for a record,
// because the end is missing.
func store(path string, value any, durably bool) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file, err := plain.Open(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if there, failed := file.Stat(); failed == nil && int(there.Size()) > len(text) {
		filled := blanks(int(there.Size()))
		copy(filled, text)
		text = filled
	}
	_, err = file.Write(text)
	if durably && err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Read loads a record and tells whether there is one. One that does not decode is being written, or was lost when the
// machine crashed, or there is only room for it.
func Read(folder, name string, value any) (bool, error) {
	text, err := plain.Read(filepath.Join(folder, name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return json.Unmarshal(bytes.TrimRight(text, " "), value) == nil, nil
}

// reservedBytes is more than a record takes for which room is reserved.
const reservedBytes = 8 << 10

// Reserve sets room aside for records, so that they can be stored although the disk is full.
func Reserve(folder string, names ...string) error {
	room := blanks(reservedBytes)
	for _, name := range names {
		file, err := plain.Open(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(room)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Reserved tells whether and when room was set aside for a record that cannot be read yet.
func Reserved(folder, name string) (at time.Time, did bool) {
	for _, room := range []string{name, name + freshSuffix} { // the second is that of earlier programs
		if info, err := os.Stat(filepath.Join(folder, room)); err == nil {
			return info.ModTime(), true
		}
	}
	return time.Time{}, false
}

func blanks(count int) []byte { return bytes.Repeat([]byte{' '}, count) }

// Sync makes the names in a folder durable.
func Sync(folder string) error {
	open, err := plain.Open(folder, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(open.Sync(), open.Close())
}
