//go:build !linux

package journaltest

import "errors"

func mount(string, int64) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
