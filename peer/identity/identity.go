// Package identity remembers over restarts of a node's process which life the node is in.
package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Keeper remembers which life a node is in.
type Keeper interface {
	// Load returns what Save kept last, zeros if nothing was.
	Load() (Remembered, error)
	// Save keeps it; it is durable when Save returns.
	Save(Remembered) error
}

// Remembered is what a node knows of its present life.
type Remembered struct {
	Incarnation uint32 `json:"incarnation"`
	// Starts is how often the process has started under it; 0 until its pulse was this node's.
	Starts uint32 `json:"starts"`
	// Token tells this node's pulses from those of another with the same name.
	Token string `json:"token"`
	// Interrupted tells that this life's pulse ended once and was brought back. Whoever saw it end may still write that
	// the peer left, however long that takes, so that the pulse proves nothing any more.
	Interrupted bool `json:"interrupted,omitempty"`
	// Away tells that the process has ended with notice: the life may be taken up again although its pulse has ended.
	Away bool `json:"away,omitempty"`
}

// File keeps the identity in a file.
type File struct{ Path string }

// Load reads the file; a missing one is no error.
func (f File) Load() (Remembered, error) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return Remembered{}, nil
	}
	var known Remembered
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return Remembered{}, fmt.Errorf("identity of this node: %w; delete %s to begin a new life", err, f.Path)
	}
	return known, nil
}

// Save replaces the file as a whole.
func (f File) Save(known Remembered) error {
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".identity-*")
	if err != nil {
		return fmt.Errorf("identity of this node: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.Path)
	}
	if err != nil {
		return fmt.Errorf("identity of this node: %w", err)
	}
	return nil
}

// Memory forgets with the process.
type Memory struct{ Known Remembered }

// Load returns what Save kept.
func (m *Memory) Load() (Remembered, error) { return m.Known, nil }

// Save keeps it until the process ends.
func (m *Memory) Save(known Remembered) error {
	m.Known = known
	return nil
}
