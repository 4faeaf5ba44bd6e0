// Package uptime is the clock of this machine that nobody can set and that goes on while the machine sleeps. All
// processes of the machine read the same, and it begins anew when the machine does.
package uptime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Moment is a reading of the clock. The zero Moment is before all others.
type Moment int64

// Now reads the clock.
func Now() Moment {
	var now unix.Timespec
	if err := unix.ClockGettime(clock, &now); err != nil {
		panic(fmt.Sprintf("uptime: this system has no clock %d: %v", clock, err))
	}
	return Moment(now.Nano())
}

// Since returns how long ago the moment was.
func (m Moment) Since() time.Duration { return time.Duration(Now() - m) }
