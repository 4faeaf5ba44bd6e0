package uptime

import "golang.org/x/sys/unix"

// clock goes on during sleep here, other than what Linux calls by this name.
const clock = unix.CLOCK_MONOTONIC
