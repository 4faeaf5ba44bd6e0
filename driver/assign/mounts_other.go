//go:build !linux

package assign

import (
	"errors"
	"os"
)

func openMounts() *os.File { return nil }

// haveChanged cannot tell.
func haveChanged(*os.File) (bool, error) { return false, errors.ErrUnsupported }
