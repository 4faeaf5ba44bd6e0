//go:build !linux

package disk

import "errors"

// Spread is not known.
func Spread(string) error { return errors.ErrUnsupported }
