package uptime

import "golang.org/x/sys/unix"

const clock = unix.CLOCK_BOOTTIME
