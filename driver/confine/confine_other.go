//go:build !linux

package confine

import "errors"

// Missing lists what the machine cannot do.
func Missing(bool) []string {
	return []string{"tasks are not confined: this system has neither namespaces nor filters of system calls"}
}

// Thread does nothing.
func (r *Rules) Thread(bool) error { return nil }

// Beside does nothing.
func (r *Rules) Beside(bool) error { return nil }

// Base is nothing.
type Base struct{}

// Renew returns none: there are no mounts of one's own.
func (b *Base) Renew([]string) *Base { return nil }

// Join fails: there are no namespaces.
func Join(int) error { return errors.ErrUnsupported }

// Bind fails: there are no mounts of one's own.
func Bind(Folder, string) error { return errors.ErrUnsupported }

// KeepAttributes does nothing: nothing is counted by attributes.
func KeepAttributes() error { return nil }
