package confine

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"starling/driver/family"
)

// Base has the mounts that are the same for all tasks but those that use folders or devices of the machine. Each task
// starts from a copy of them, and none can change what is mounted there.
type Base struct {
	space int
	made  time.Time
}

// baseMax is how old a base may become: it does not know the sockets and devices that have come since.
const baseMax = time.Second

// Renew returns a base for rules that cover these, another one if this is too old; nil if none can be made.
func (b *Base) Renew(covered []string) (fresh *Base) {
	if b != nil && time.Since(b.made) < baseMax {
		return b
	}
	b.Close()
	done := make(chan struct{})
	go family.OnThreadThatEnds(func() {
		defer close(done)
		fresh, _ = newBase(covered) // what fails here is told when a task does it by itself
	})
	<-done
	return fresh
}

// newBase makes one on a thread that ends with this.
func newBase(covered []string) (*Base, error) {
	b := &Base{space: -1, made: time.Now()}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("set the mounts for all tasks apart: %w", err)
	}
	r := Rules{Covered: covered}
	err := r.devices()
	if err == nil {
		err = r.system(nil)
	}
	if err == nil {
		b.space, err = unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		err = b.enter()
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("prepare the mounts for all tasks: %w", err)
	}
	return b, nil
}

// enter puts this thread there.
func (b *Base) enter() error {
	return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(b.space, unix.CLONE_NEWNS))
}

// Close gives it up; tasks keep what they have.
func (b *Base) Close() {
	if b != nil && b.space >= 0 {
		unix.Close(b.space)
	}
}

// hasBase tells whether the thread begins with what was prepared.
func (r *Rules) hasBase() bool { return r.Base != nil && len(r.Folders) == 0 && len(r.Devices) == 0 }
