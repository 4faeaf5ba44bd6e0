package pack

import (
	"os"

	"golang.org/x/sys/unix"
)

// durable has all that was written below a folder outlive a crash of the machine.
func durable(dir string) error {
	open, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer open.Close()
	return unix.Syncfs(int(open.Fd()))
}
