package program

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"starling/driver"
)

// CheckHostPath tells why a task cannot use a host path here, nil if it can.
func CheckHostPath(h driver.HostPath) error {
	if h.Path == "" {
		return Missing(fmt.Sprintf("this machine does not offer host path %s: see host_paths of its agent", h.Name))
	}
	switch real, err := filepath.EvalSymlinks(h.Path); {
	case err != nil:
		return fmt.Errorf("host path %s: %w", h.Name, err)
	case real != h.Path:
		return Missing(fmt.Sprintf("host path %s: %s leads elsewhere by a symbolic link now; if that is meant, start the "+
			"machine's agent again", h.Name, h.Path))
	}
	info, err := os.Stat(h.Path)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("host path %s: %w", h.Name, err)
	}
	return nil
}
